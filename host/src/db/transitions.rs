//! Leave and rejoin: the order of effects that keeps the gate never more open
//! than the disk.
//!
//! | leave | rejoin |
//! |---|---|
//! | shut the gate, wait for signals under way | |
//! | read the clock | read the clock |
//! | ask the rules | ask the rules |
//! | write record and history, sync | write record and history, sync |
//! | set the gate to what the policy says | set the gate to what the policy says |
//!
//! One lock, the transition lock, is held throughout, so transitions happen one
//! after the other and whoever holds it finds memory and disk in agreement.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::TidalDb;
use crate::error::{Error, Result};
use crate::gate::Standing;
use crate::ledger::to_json;
use crate::membership::{CommunityMembership, FanOut, MembershipStatus, Transition};
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};
use crate::storage::{Batch, Partition, Storage};

/// Whose high-water mark of the clock transitions write.
const CLOCK_OWNER: &[u8] = b"transitions";

/// The transition lock, with what it guards.
#[derive(Debug)]
pub(super) struct Transitions {
    totals: Mutex<TransitionTotals>,
}

/// How many transitions were acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TransitionTotals {
    pub(super) leaves: u64,
    pub(super) rejoins: u64,
}

impl TransitionTotals {
    fn plus_one(mut self, to: MembershipStatus) -> Self {
        match to {
            MembershipStatus::Left => self.leaves += 1,
            MembershipStatus::Active => self.rejoins += 1,
        }
        self
    }
}

impl Transitions {
    pub(super) fn load(storage: &Storage) -> Result<Self> {
        let totals = match storage.partition(Partition::System).get(&totals_key())? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(Error::storage("read the totals of transitions"))?,
            None => TransitionTotals::default(),
        };
        Ok(Transitions {
            totals: Mutex::new(totals),
        })
    }

    pub(super) fn totals(&self) -> TransitionTotals {
        *self.totals.lock()
    }

    /// Runs `with` while no transition is under way.
    pub(super) fn paused<R>(&self, with: impl FnOnce() -> R) -> R {
        let _totals = self.totals.lock();
        with()
    }
}

/// What the rules made of a transition.
struct Decision {
    membership: CommunityMembership,
    fan_out: FanOut,
    record: Vec<u8>,
}

impl TidalDb {
    pub(super) fn transition(
        &self,
        user_id: u64,
        to: MembershipStatus,
    ) -> Result<CommunityMembership> {
        let mut totals = self.transitions.totals.lock();
        if to == MembershipStatus::Left {
            self.gate.shut(user_id);
        }
        // Read after the gate is shut: above the stamp of all that it let through.
        let at_ns = self.clock.now_ns();
        let decision = self
            .decide(user_id, to, at_ns)
            .map_err(|error| self.undecided(user_id, to, error))?;
        let next_totals = totals.plus_one(to);
        self.persist(&decision, to, at_ns, &next_totals)
            .map_err(|error| self.unsettled(user_id, &error))?;
        *totals = next_totals;
        self.gate.settle(&decision.membership, decision.fan_out);
        Ok(decision.membership)
    }

    /// What becomes of a transition for which nothing was written. A rejoin has
    /// changed nothing; a leave is in force from here on, though not recorded.
    fn undecided(&self, user_id: u64, to: MembershipStatus, error: Error) -> Error {
        if to == MembershipStatus::Active {
            return error;
        }
        let unsettled = self.unsettled(user_id, &error);
        match error {
            Error::Storage { .. } => unsettled,
            other => other,
        }
    }

    /// What becomes of a transition that may or may not be in storage.
    fn unsettled(&self, user_id: u64, error: &Error) -> Error {
        self.gate.shut_as(user_id, Standing::Unsettled);
        Error::NotDurable {
            user_id,
            reason: error.to_string(),
        }
    }

    fn decide(&self, user_id: u64, to: MembershipStatus, at_ns: u64) -> Result<Decision> {
        let current = self.current(user_id)?;
        let membership = match to {
            MembershipStatus::Left => self.rules.leave(&current, at_ns)?,
            MembershipStatus::Active => self.rules.rejoin(&current)?,
        };
        Ok(Decision {
            membership,
            fan_out: self.rules.fan_out(&membership)?,
            record: self.rules.record(&membership)?,
        })
    }

    /// The membership that a transition starts from. Where the gate does not know
    /// it, because the record is malformed or the transition before failed, it is
    /// what the history says.
    fn current(&self, user_id: u64) -> Result<CommunityMembership> {
        match self.gate.known(user_id) {
            None => return Ok(CommunityMembership::never_left(user_id)),
            Some(known) if known.standing == Standing::Settled => return Ok(known.membership),
            Some(_) => {}
        }
        let mut current = CommunityMembership::never_left(user_id);
        for transition in history(&self.storage, user_id)? {
            current.status = transition.to;
            if transition.to == MembershipStatus::Left {
                current.left_at_ns = Some(transition.at_ns);
            }
        }
        Ok(current)
    }

    fn persist(
        &self,
        decision: &Decision,
        to: MembershipStatus,
        at_ns: u64,
        totals: &TransitionTotals,
    ) -> Result<()> {
        let user_id = decision.membership.user_id;
        let mut batch = Batch::default();
        // Keys of this user that do not parse are replaced by the one that does.
        let prefix = EntityId(user_id).0.to_be_bytes();
        self.storage
            .partition(Partition::Memberships)
            .scan(&prefix, |key, _| {
                batch.delete(Partition::Memberships, key.to_vec());
                Ok(())
            })?;
        batch.put(
            Partition::Memberships,
            encode_key(EntityId(user_id), Tag::CommunityLeave, b""),
            decision.record.clone(),
        );
        batch.put(
            Partition::History,
            encode_key(EntityId(user_id), Tag::Transition, &at_ns.to_be_bytes()),
            to.name().as_bytes().to_vec(),
        );
        batch.put(
            Partition::System,
            totals_key(),
            to_json("the totals of transitions", totals)?,
        );
        self.clock.put_high_water(CLOCK_OWNER, &mut batch);
        self.storage.apply(&batch)?;
        self.storage.flush()
    }
}

fn totals_key() -> Vec<u8> {
    encode_key(EntityId(0), Tag::TransitionTotals, b"")
}

/// The transitions of one user, the oldest first.
pub(super) fn history(storage: &Storage, user_id: u64) -> Result<Vec<Transition>> {
    let mut transitions = Vec::new();
    let prefix = encode_key(EntityId(user_id), Tag::Transition, b"");
    storage
        .partition(Partition::History)
        .scan(&prefix, |key, value| {
            let transition = parse_transition(key, value)
                .ok_or("it does not parse")
                .map_err(Error::storage(format!(
                    "read the history of user {user_id}"
                )))?;
            transitions.push(transition);
            Ok(())
        })?;
    Ok(transitions)
}

fn parse_transition(key: &[u8], value: &[u8]) -> Option<Transition> {
    let (_, _, at_ns) = parse_key(key)?;
    let to = [MembershipStatus::Active, MembershipStatus::Left]
        .into_iter()
        .find(|status| status.name().as_bytes() == value)?;
    Some(Transition {
        to,
        at_ns: u64::from_be_bytes(at_ns.try_into().ok()?),
    })
}
