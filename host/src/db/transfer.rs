//! Memberships as plain data: out of one store and into another, exact to the
//! nanosecond.

use super::commit::Request;
use super::{TidalDb, history};
use crate::clock::LATEST_SYSTEM_NS;
use crate::error::{Error, Result};
use crate::membership::{CommunityMembership, MembershipStatus, Transition};

impl TidalDb {
    /// The users with a membership record, in order.
    pub fn users_with_membership(&self) -> Vec<u64> {
        let mut users = self.gate.users();
        users.sort_unstable();
        users
    }

    /// Gives a user the history that they have in another store; what it leads to must
    /// be `membership`. Durable when it returns, and the gate is then as it says. A call
    /// that was interrupted can be repeated: of what the user has already nothing is
    /// written again.
    ///
    /// [`Error::NotDurable`] if a transition could not be made durable: the user's gate is
    /// shut then. After any other error nothing was changed: [`Error::InvalidArgument`] if
    /// the user has another history here, or if the transitions are none, are not in the
    /// order of their instants, or do not lead to the membership.
    pub fn import_membership(
        &self,
        membership: &CommunityMembership,
        transitions: &[Transition],
    ) -> Result<()> {
        let user_id = membership.user_id;
        let _turn = self.turns.take(user_id);
        self.commit.apply()?;
        let known = history::of_user(&self.storage, user_id)?;
        if !transitions.starts_with(&known) {
            return Err(refused(
                user_id,
                "the user has another history in this store",
            ));
        }
        let mut instants = transitions.iter().map(|transition| transition.at_ns);
        if transitions.is_empty() || !instants.clone().is_sorted_by(|left, right| left < right) {
            return Err(refused(
                user_id,
                "the transitions are none, or not in order",
            ));
        }
        // The clock goes on above the last one, and must not run out.
        if instants.any(|at_ns| at_ns == 0 || at_ns > LATEST_SYSTEM_NS) {
            return Err(refused(
                user_id,
                "a transition is at 0, or after 11 April 2262",
            ));
        }
        let mut requests = self.replay(membership, transitions)?;
        requests.drain(..known.len());
        if requests.is_empty() {
            return self.community_layer_status(user_id).map(drop);
        }
        let fan_out = self.rules.read().fan_out(membership)?;

        self.gate.shut(user_id);
        // Signals from here on are behind all of it.
        for transition in transitions {
            self.clock.advance_to(transition.at_ns);
        }
        for request in requests {
            self.commit
                .commit(request)
                .map_err(|reason| self.unsettled(user_id, reason))?;
        }
        self.gate.settle(membership, fan_out);
        Ok(())
    }

    /// What to write for each transition, if they lead to the membership.
    fn replay(
        &self,
        membership: &CommunityMembership,
        transitions: &[Transition],
    ) -> Result<Vec<Request>> {
        let user_id = membership.user_id;
        let mut current = CommunityMembership::never_left(user_id);
        let mut requests = Vec::new();
        for transition in transitions {
            current = match transition.to {
                MembershipStatus::Left => self.rules.read().leave(&current, transition.at_ns)?,
                MembershipStatus::Active => self.rules.read().rejoin(&current)?,
            };
            requests.push(Request {
                user_id,
                at_ns: transition.at_ns,
                to: transition.to,
                record: self.rules.read().record(&current)?,
                replaces_keys: true,
            });
        }
        if current == *membership {
            return Ok(requests);
        }
        Err(refused(
            user_id,
            "the transitions do not lead to the membership",
        ))
    }
}

fn refused(user_id: u64, reason: &str) -> Error {
    Error::InvalidArgument {
        what: "membership",
        reason: format!("user {user_id}: {reason}"),
    }
}
