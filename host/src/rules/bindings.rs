//! The bindings to the contract in `wit/`, and the one place where its types and
//! the host's meet.

#![allow(missing_debug_implementations, unreachable_pub, reason = "generated")]
#![allow(clippy::pedantic, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "membership-component",
});

pub(super) use exports::tidegate::community::membership::{
    CommunityMembership as WitMembership, FanOut as WitFanOut, Guest as Membership,
};
use exports::tidegate::community::types::MembershipStatus as WitStatus;

use crate::membership::{CommunityMembership, FanOut, MembershipStatus};

impl From<&CommunityMembership> for WitMembership {
    fn from(membership: &CommunityMembership) -> Self {
        WitMembership {
            user_id: membership.user_id,
            status: match membership.status {
                MembershipStatus::Active => WitStatus::Active,
                MembershipStatus::Left => WitStatus::Left,
            },
            left_at_ns: membership.left_at_ns,
        }
    }
}

impl From<WitMembership> for CommunityMembership {
    fn from(membership: WitMembership) -> Self {
        CommunityMembership {
            user_id: membership.user_id,
            status: match membership.status {
                WitStatus::Active => MembershipStatus::Active,
                WitStatus::Left => MembershipStatus::Left,
            },
            // In the contract 0 is no instant.
            left_at_ns: membership.left_at_ns.filter(|instant| *instant != 0),
        }
    }
}

impl From<WitFanOut> for FanOut {
    fn from(fan_out: WitFanOut) -> Self {
        FanOut {
            cohort_attribution: fan_out.contains(WitFanOut::COHORT_ATTRIBUTION),
            community_forwarding: fan_out.contains(WitFanOut::COMMUNITY_FORWARDING),
        }
    }
}
