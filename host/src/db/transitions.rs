//! Leave and rejoin: the order of effects that keeps the gate never more open
//! than the disk.
//!
//! | leave | rejoin |
//! |---|---|
//! | shut the gate, wait for signals under way | |
//! | read the clock | read the clock |
//! | ask the rules | ask the rules |
//! | write and sync the journal | write and sync the journal |
//! | set the gate to what the policy says | set the gate to what the policy says |
//!
//! A user's turn is held throughout, so whoever holds it finds memory and disk in
//! agreement. The record and the history reach storage, together, some time later; see
//! [`commit`](super::commit).

use super::commit::Request;
use super::{TidalDb, history};
use crate::error::{Error, Result};
use crate::gate::{Known, Standing};
use crate::membership::{CommunityMembership, FanOut, MembershipStatus, Transition};

/// What the rules made of a transition.
struct Decision {
    membership: CommunityMembership,
    fan_out: FanOut,
    record: Vec<u8>,
}

impl TidalDb {
    pub(crate) fn transition(
        &self,
        user_id: u64,
        to: MembershipStatus,
    ) -> Result<CommunityMembership> {
        let _turn = self.turns.take(user_id);
        let known = self.gate.known(user_id);
        if to == MembershipStatus::Left {
            self.gate.shut(user_id);
        }
        // Read after the gate is shut: above the stamp of all that it let through.
        let at_ns = self.clock.now_ns();
        let decision = self
            .decide(user_id, known, to, at_ns)
            .map_err(|error| self.undecided(user_id, to, error))?;
        let request = Request {
            user_id,
            transitions: vec![Transition { to, at_ns }],
            record: decision.record,
            replaces_keys: known.is_some_and(|known| known.standing == Standing::Malformed),
        };
        self.commit
            .commit(request)
            .map_err(|reason| self.unsettled(user_id, reason))?;
        self.gate.settle(&decision.membership, decision.fan_out);
        Ok(decision.membership)
    }

    /// What becomes of a transition for which nothing was written. A rejoin has
    /// changed nothing; a leave is in force from here on, though not recorded.
    fn undecided(&self, user_id: u64, to: MembershipStatus, error: Error) -> Error {
        if to == MembershipStatus::Active {
            return error;
        }
        let unsettled = self.unsettled(user_id, error.to_string());
        match error {
            Error::Storage { .. } => unsettled,
            other => other,
        }
    }

    /// What becomes of a transition that may or may not be on disk.
    pub(super) fn unsettled(&self, user_id: u64, reason: String) -> Error {
        self.gate.shut_as(user_id, Standing::Unsettled);
        Error::NotDurable { user_id, reason }
    }

    fn decide(
        &self,
        user_id: u64,
        known: Option<Known>,
        to: MembershipStatus,
        at_ns: u64,
    ) -> Result<Decision> {
        let current = self.current(user_id, known)?;
        let rules = self.rules.read();
        let membership = match to {
            MembershipStatus::Left => rules.leave(&current, at_ns)?,
            MembershipStatus::Active => rules.rejoin(&current)?,
        };
        Ok(Decision {
            membership,
            fan_out: rules.fan_out(&membership)?,
            record: rules.record(&membership)?,
        })
    }

    /// The membership that a transition starts from. Where the gate does not know
    /// it, because the record is malformed or the transition before failed, it is
    /// what the history says.
    fn current(&self, user_id: u64, known: Option<Known>) -> Result<CommunityMembership> {
        match known {
            None => return Ok(CommunityMembership::never_left(user_id)),
            Some(known) if known.standing == Standing::Settled => return Ok(known.membership),
            Some(_) => {}
        }
        // The history is short of what storage did not take yet.
        self.commit.apply()?;
        let mut current = CommunityMembership::never_left(user_id);
        for transition in history::of_user(&self.storage, user_id)? {
            current.status = transition.to;
            if transition.to == MembershipStatus::Left {
                current.left_at_ns = Some(transition.at_ns);
            }
        }
        Ok(current)
    }
}
