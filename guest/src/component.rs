//! The glue between the contract and the rules: bindings, conversions, nothing
//! that decides.

#[allow(
    unsafe_code,
    reason = "the canonical ABI is raw pointers; all of it is generated"
)]
#[allow(clippy::pedantic, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "membership-component",
    });

    export!(Component);
    use super::Component;
}

use bindings::exports::tidegate::community::membership::{
    CommunityMembership, FanOut, Guest, MalformedRecord, RestoredMembership, TimestampNs, UserId,
};
use bindings::exports::tidegate::community::types::MembershipStatus;

use crate::policy::{self, Membership, Status};
use crate::record::{self, Malformed, RECORD_LENGTH};

struct Component;

impl Guest for Component {
    fn leave(current: CommunityMembership, now: TimestampNs) -> CommunityMembership {
        policy::leave(current.into(), now).into()
    }

    fn rejoin(current: CommunityMembership) -> CommunityMembership {
        policy::rejoin(current.into()).into()
    }

    fn status(
        user: UserId,
        stored: Option<Vec<u8>>,
    ) -> Result<CommunityMembership, MalformedRecord> {
        match policy::status(user, stored.as_deref()) {
            Ok(membership) => Ok(membership.into()),
            Err(malformed) => Err(malformed.into()),
        }
    }

    fn signal(current: CommunityMembership) -> FanOut {
        policy::signal(current.into()).into()
    }

    fn serialize_membership(membership: CommunityMembership) -> Vec<u8> {
        record::serialize(&membership.into()).to_vec()
    }

    fn deserialize_membership(user: UserId, bytes: Vec<u8>) -> Option<CommunityMembership> {
        record::deserialize(user, &bytes).ok().map(Into::into)
    }

    fn restore(
        users: Vec<UserId>,
        lengths: Vec<u32>,
        bytes: Vec<u8>,
    ) -> Vec<Option<RestoredMembership>> {
        policy::restore(&users, &lengths, &bytes)
            .map(|restored| {
                restored.map(|(membership, fan_out)| RestoredMembership {
                    membership: membership.into(),
                    fan_out: fan_out.into(),
                })
            })
            .collect()
    }
}

impl From<CommunityMembership> for Membership {
    fn from(membership: CommunityMembership) -> Self {
        Membership {
            user_id: membership.user_id,
            status: match membership.status {
                MembershipStatus::Active => Status::Active,
                MembershipStatus::Left => Status::Left,
            },
            left_at_ns: membership.left_at_ns,
        }
    }
}

impl From<Membership> for CommunityMembership {
    fn from(membership: Membership) -> Self {
        CommunityMembership {
            user_id: membership.user_id,
            status: match membership.status {
                Status::Active => MembershipStatus::Active,
                Status::Left => MembershipStatus::Left,
            },
            left_at_ns: membership.left_at_ns,
        }
    }
}

impl From<policy::FanOut> for FanOut {
    fn from(fan_out: policy::FanOut) -> Self {
        let mut flags = FanOut::empty();
        flags.set(FanOut::COHORT_ATTRIBUTION, fan_out.cohort_attribution);
        flags.set(FanOut::COMMUNITY_FORWARDING, fan_out.community_forwarding);
        flags
    }
}

impl From<Malformed> for MalformedRecord {
    fn from(malformed: Malformed) -> Self {
        let reason = match malformed {
            Malformed::Length(found) => format!("{RECORD_LENGTH} bytes expected, {found} found"),
            Malformed::Status(found) => format!("status byte 0 or 1 expected, {found} found"),
        };
        MalformedRecord { reason }
    }
}
