//! The gate: for each user with a record, what the policy lets through, and the
//! fence that makes a leave exact. DashMap is named nowhere else.
//!
//! # The fence
//!
//! A signal is forwarded inside [`Gate::pass`], which holds the read lock of the
//! user's shard from the look-up, which takes it anyway, to the end of the
//! forwarding, for absent users too. To shut the gate is to write the user's
//! entry, which needs the shard's write lock. So when [`Gate::shut`] returns,
//! every signal of the user that was under way has been forwarded in full, and
//! every later one finds the gate shut.
//!
//! # Locks
//!
//! The order of all locks in this crate, and so why no call can deadlock:
//!
//! 1. the pause of transitions, then one user's turn (`db::turns`); or the change
//!    lock (`ledger`)
//! 2. the component's instance (`rules`), the ledger's commit lock, or the writer of
//!    transitions (`db::commit`)
//! 3. the queue of transitions (`db::commit`), which nobody holds while waiting for
//!    the writer
//! 4. one shard of the gate
//! 5. one stripe of the pending contributions (`ledger::pending`)
//!
//! A call that holds one takes others only from further down, and never two of
//! one line. While a shard is held, nothing but memory is touched: not the
//! component, not storage, no code of a caller. Nothing inside `pass` asks the
//! gate again: a reader that waits behind a waiting writer for a lock it already
//! reads would wait for ever.

use std::num::NonZeroU64;
use std::ops::DerefMut;

use dashmap::DashMap;
use foldhash::fast::RandomState;

use crate::membership::{CommunityMembership, FanOut, MembershipStatus};

/// What the gate holds for one user with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    left_at_ns: Option<NonZeroU64>,
    status: MembershipStatus,
    fan_out: FanOut,
    standing: Standing,
}

impl Entry {
    fn settled(membership: &CommunityMembership, fan_out: FanOut) -> Self {
        Entry {
            left_at_ns: membership.left_at_ns.and_then(NonZeroU64::new),
            status: membership.status,
            fan_out,
            standing: Standing::Settled,
        }
    }
}

/// How far an entry can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Memory and storage agree, or a transition is under way that will see to it.
    Settled,
    /// The latest transition failed after the gate was shut or storage was
    /// written to. The membership is the one before it.
    Unsettled,
    /// The stored record cannot be read. The membership is not known.
    Malformed,
    /// Transitions were lost, and the user may be among those they were of. The
    /// membership is not known.
    Lost,
}

/// What the gate says of a user who has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) membership: CommunityMembership,
    pub(crate) fan_out: FanOut,
    pub(crate) standing: Standing,
}

/// How many users the gate holds, by what it says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) left: u64,
    pub(crate) malformed: u64,
}

/// The map of users with a record. A user without an entry is active.
#[derive(Debug)]
pub(crate) struct Gate {
    entries: DashMap<u64, Entry, RandomState>,
    /// What a user without an entry may do: everything, unless transitions were lost
    /// and nobody knows whose.
    default: FanOut,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate {
            entries: DashMap::with_hasher(RandomState::default()),
            default: FanOut::ALL,
        }
    }

    /// Calls `forward` with what a signal of this user may be added to, and keeps
    /// that true until it returns. `forward` must only touch memory, take no lock
    /// but a stripe of the pending contributions, and not ask the gate again.
    pub(crate) fn pass<R>(&self, user_id: u64, forward: impl FnOnce(FanOut) -> R) -> R {
        let hash = self.entries.hash_usize(&user_id);
        let shard = self.entries.shards()[self.entries.determine_shard(hash)].read();
        let fan_out = shard
            .get(hash as u64, |(user, _)| *user == user_id)
            .map_or(self.default, |(_, entry)| entry.get().fan_out);
        let outcome = forward(fan_out);
        drop(shard);
        outcome
    }

    /// Shuts the gate for every user without an entry.
    pub(crate) fn shut_by_default(&mut self) {
        self.default = FanOut::NONE;
    }

    /// What the gate says of this user; `None` if it has no entry and is open.
    pub(crate) fn known(&self, user_id: u64) -> Option<Known> {
        let Some(entry) = self.entries.get(&user_id).map(|entry| *entry) else {
            return (self.default != FanOut::ALL).then_some(Known {
                membership: CommunityMembership::never_left(user_id),
                fan_out: self.default,
                standing: Standing::Lost,
            });
        };
        Some(Known {
            membership: CommunityMembership {
                user_id,
                status: entry.status,
                left_at_ns: entry.left_at_ns.map(NonZeroU64::get),
            },
            fan_out: entry.fan_out,
            standing: entry.standing,
        })
    }

    /// Shuts the gate for this user and keeps what is known of them. When this
    /// returns, no signal of the user that was let in before is still under way.
    pub(crate) fn shut(&self, user_id: u64) {
        self.entry(user_id).fan_out = FanOut::NONE;
    }

    /// Shuts the gate for this user and says how far what is known of them can
    /// still be relied on.
    pub(crate) fn shut_as(&self, user_id: u64, standing: Standing) {
        let mut entry = self.entry(user_id);
        entry.fan_out = FanOut::NONE;
        entry.standing = standing;
    }

    fn entry(&self, user_id: u64) -> impl DerefMut<Target = Entry> + '_ {
        let never_left = CommunityMembership::never_left(user_id);
        self.entries
            .entry(user_id)
            .or_insert_with(|| Entry::settled(&never_left, FanOut::NONE))
    }

    /// Sets what storage holds for this user and what the policy makes of it.
    pub(crate) fn settle(&self, membership: &CommunityMembership, fan_out: FanOut) {
        self.entries
            .insert(membership.user_id, Entry::settled(membership, fan_out));
    }

    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        for entry in &self.entries {
            match entry.standing {
                Standing::Malformed | Standing::Lost => census.malformed += 1,
                _ if entry.status == MembershipStatus::Left => census.left += 1,
                _ => {}
            }
        }
        census
    }
}
