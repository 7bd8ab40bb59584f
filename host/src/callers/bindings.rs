//! The bindings to the contract in `wit/` as callers see it, and the one place where its
//! types and the host's meet on that side.

#![allow(missing_debug_implementations, unreachable_pub, reason = "generated")]
#![allow(clippy::pedantic, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "caller",
    exports: { default: async },
});

use wasmtime::component::{HasSelf, Linker};

use self::tidegate::community::community_layer::{self, EngagementSignal, Host};
use self::tidegate::community::types::MembershipStatus as WitStatus;
use super::permission::Function;
use super::surroundings::Session;
use crate::db;
use crate::error::Error;
use crate::ledger::Signal;
use crate::membership::{CommunityMembership, MembershipStatus, Transition};

/// What a function of the contract returns.
type Answer<T> = Result<T, community_layer::Error>;

pub(super) fn add_to_linker(linker: &mut Linker<Session>) -> wasmtime::Result<()> {
    Caller::add_to_linker::<_, HasSelf<Session>>(linker, |session| session)
}

impl self::tidegate::community::types::Host for Session {}

impl Host for Session {
    fn leave(&mut self, user: u64) -> Answer<community_layer::CommunityMembership> {
        self.permission.check(Function::Leave, user)?;
        Ok(self.db.transition(user, MembershipStatus::Left)?.into())
    }

    fn rejoin(&mut self, user: u64) -> Answer<community_layer::CommunityMembership> {
        self.permission.check(Function::Rejoin, user)?;
        Ok(self.db.transition(user, MembershipStatus::Active)?.into())
    }

    fn status(&mut self, user: u64) -> Answer<community_layer::CommunityMembership> {
        self.permission.check(Function::Status, user)?;
        Ok(self.db.community_layer_status(user)?.into())
    }

    fn signal(&mut self, user: u64, signal: EngagementSignal) -> Answer<community_layer::Receipt> {
        self.permission.check(Function::Signal, user)?;
        let signal = Signal {
            item_id: signal.item_id,
            kind: &signal.kind,
            weight: signal.weight,
        };
        Ok(self.db.signal_with_context(user, &signal)?.into())
    }

    fn history(&mut self, user: u64) -> Answer<Vec<community_layer::Transition>> {
        self.permission.check(Function::History, user)?;
        let history = self.db.community_layer_history(user)?;
        Ok(history.into_iter().map(Into::into).collect())
    }
}

impl From<Error> for community_layer::Error {
    fn from(error: Error) -> Self {
        use community_layer::Error as Wit;
        let text = error.to_string();
        match error {
            Error::NotDurable { .. } => Wit::NotDurable(text),
            Error::MalformedRecord { .. } => Wit::MalformedRecord(text),
            Error::InvalidSignal { .. } => Wit::InvalidSignal(text),
            Error::AccessDenied { .. } => Wit::AccessDenied(text),
            Error::Storage { .. } => Wit::Storage(text),
            Error::ComponentFailed { .. } => Wit::Component(text),
            // None of the five functions opens a store, loads a component, or takes what
            // these are about.
            Error::StoreInUse { .. }
            | Error::StoreFormat { .. }
            | Error::Damaged { .. }
            | Error::InvalidArgument { .. }
            | Error::InvalidPredicate { .. }
            | Error::NotFound { .. }
            | Error::CallerRefused { .. }
            | Error::CallerFailed { .. } => Wit::Storage(text),
            Error::ComponentRefused { .. } => Wit::Component(text),
        }
    }
}

impl From<CommunityMembership> for community_layer::CommunityMembership {
    fn from(membership: CommunityMembership) -> Self {
        community_layer::CommunityMembership {
            user_id: membership.user_id,
            status: membership.status.into(),
            left_at_ns: membership.left_at_ns,
        }
    }
}

impl From<MembershipStatus> for WitStatus {
    fn from(status: MembershipStatus) -> Self {
        match status {
            MembershipStatus::Active => WitStatus::Active,
            MembershipStatus::Left => WitStatus::Left,
        }
    }
}

impl From<db::Receipt> for community_layer::Receipt {
    fn from(receipt: db::Receipt) -> Self {
        community_layer::Receipt {
            cohorts: receipt.cohorts,
            communities: receipt.communities,
            gated: receipt.gated,
        }
    }
}

impl From<Transition> for community_layer::Transition {
    fn from(transition: Transition) -> Self {
        community_layer::Transition {
            to: transition.to.into(),
            at_ns: transition.at_ns,
        }
    }
}
