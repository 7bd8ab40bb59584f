//! Memberships as plain data: out of one store and into another, exact to the
//! nanosecond.

use super::commit::Request;
use super::{TidalDb, history};
use crate::clock::LATEST_SYSTEM_NS;
use crate::error::{Error, Result};
use crate::gate::Standing;
use crate::journal::blocks::MAX_TRANSITIONS;
use crate::membership::{CommunityMembership, MembershipStatus, Transition};

impl TidalDb {
    /// The users with a membership record, in order.
    pub fn users_with_membership(&self) -> Vec<u64> {
        let mut users = self.gate.users();
        users.sort_unstable();
        users
    }

    /// Gives a user the history that they have in another store; what it leads to must
    /// be `membership`. Durable when it returns, and the gate is then as it says. What the
    /// user already has is not written again, so a call can be repeated, and a later one
    /// may bring a longer history. The instants stay those of the other store: what was
    /// forwarded here before may be stamped above a boundary that is imported.
    ///
    /// [`Error::NotDurable`] if it could not be written: the user's gate is shut then. After
    /// any other error nothing was changed: [`Error::InvalidArgument`] if the user has
    /// another history here, or if the transitions are none, are not in the order of their
    /// instants, or do not lead to the membership.
    pub fn import_membership(
        &self,
        membership: &CommunityMembership,
        transitions: &[Transition],
    ) -> Result<()> {
        let user_id = membership.user_id;
        let _turn = self.turns.take(user_id);
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
        let memberships = self.replay(user_id, transitions)?;
        if memberships.last() != Some(membership) {
            return Err(refused(
                user_id,
                "the transitions do not lead to the membership",
            ));
        }
        let present = self.present(user_id, transitions, &memberships)?;
        let requests = self.requests(user_id, transitions, &memberships, present)?;
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

    /// The membership after each transition.
    fn replay(&self, user_id: u64, transitions: &[Transition]) -> Result<Vec<CommunityMembership>> {
        let rules = self.rules.read();
        let mut current = CommunityMembership::never_left(user_id);
        transitions
            .iter()
            .map(|transition| {
                current = match transition.to {
                    MembershipStatus::Left => rules.leave(&current, transition.at_ns)?,
                    MembershipStatus::Active => rules.rejoin(&current)?,
                };
                Ok(current)
            })
            .collect()
    }

    /// How many of the transitions the user has already. An error if there are others, or
    /// if the gate knows of others: then the history was damaged.
    fn present(
        &self,
        user_id: u64,
        transitions: &[Transition],
        memberships: &[CommunityMembership],
    ) -> Result<usize> {
        self.commit.apply()?;
        let present = history::of_user(&self.storage, user_id)?;
        let reached = match present.len().checked_sub(1) {
            Some(last) => memberships.get(last).copied(),
            None => Some(CommunityMembership::never_left(user_id)),
        };
        let is_known = match self.gate.known(user_id) {
            None => present.is_empty(),
            Some(known) => match known.standing {
                Standing::Settled => reached == Some(known.membership),
                // What failed is in no history.
                Standing::Unsettled => true,
                Standing::Malformed | Standing::Lost => present.is_empty(),
            },
        };
        if is_known && transitions.starts_with(&present) {
            return Ok(present.len());
        }
        // What else is wrong with this user comes first.
        self.community_layer_status(user_id)?;
        Err(refused(
            user_id,
            "the user has another history in this store",
        ))
    }

    /// What to write of the transitions behind the first `present`: all at once, unless
    /// they are thousands.
    fn requests(
        &self,
        user_id: u64,
        transitions: &[Transition],
        memberships: &[CommunityMembership],
        mut present: usize,
    ) -> Result<Vec<Request>> {
        let mut requests = Vec::new();
        while present < transitions.len() {
            let start = present;
            present += written_at_once(&transitions[start..]);
            requests.push(Request {
                user_id,
                transitions: transitions[start..present].to_vec(),
                record: self.rules.read().record(&memberships[present - 1])?,
                replaces_keys: true,
            });
        }
        Ok(requests)
    }
}

/// How many of these are written at once: all, or as many as fit, up to a leave. A crash
/// before the rest is written then leaves the user's gate shut.
fn written_at_once(transitions: &[Transition]) -> usize {
    if transitions.len() <= MAX_TRANSITIONS {
        return transitions.len();
    }
    let last_leave = transitions[..MAX_TRANSITIONS]
        .iter()
        .rposition(|transition| transition.to == MembershipStatus::Left);
    last_leave.map_or(MAX_TRANSITIONS, |at| at + 1)
}

fn refused(user_id: u64, reason: &str) -> Error {
    Error::InvalidArgument {
        what: "membership",
        reason: format!("user {user_id}: {reason}"),
    }
}
