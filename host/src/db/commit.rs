//! Group commit: transitions of different users, on different threads, share one sync
//! of the journal.
//!
//! Whoever comes while nobody writes becomes the leader and writes for all who wait;
//! who comes meanwhile waits and is in the next group. When the journal is synced the
//! transitions are durable. They then go into storage, in one batch, without a sync:
//! what a crash takes from storage comes back from the journal.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::history;
use crate::clock::HostClock;
use crate::error::{Error, Result};
use crate::journal::format::Entry;
use crate::journal::{Content, Journal};
use crate::membership::MembershipStatus;
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Batch, Partition, Storage};

/// Whose high-water mark of the clock transitions write.
const CLOCK_OWNER: &[u8] = b"transitions";

/// How many transitions were acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TransitionTotals {
    pub(super) leaves: u64,
    pub(super) rejoins: u64,
}

impl TransitionTotals {
    pub(super) fn count(&mut self, to: MembershipStatus) {
        match to {
            MembershipStatus::Left => self.leaves += 1,
            MembershipStatus::Active => self.rejoins += 1,
        }
    }
}

/// A transition that is to be made durable.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) user_id: u64,
    pub(super) at_ns: u64,
    pub(super) to: MembershipStatus,
    pub(super) record: Vec<u8>,
}

/// A request and what became of it: the text of the error, if it failed.
#[derive(Debug)]
struct Waiting {
    request: Request,
    outcome: OnceLock<Result<(), String>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Arc<Waiting>>,
    /// Whether somebody is writing a group.
    led: bool,
}

#[derive(Debug)]
struct Writer {
    journal: Journal,
    next_sequence: u64,
    totals: TransitionTotals,
    /// Transitions that are in the journal and that storage failed to take.
    unapplied: Vec<Entry<'static>>,
}

/// What makes transitions durable.
#[derive(Debug)]
pub(super) struct GroupCommit {
    queue: Mutex<Queue>,
    written: Condvar,
    writer: Mutex<Writer>,
    storage: Storage,
    clock: Arc<HostClock>,
}

impl GroupCommit {
    pub(super) fn new(
        journal: Journal,
        last_sequence: u64,
        totals: TransitionTotals,
        storage: Storage,
        clock: Arc<HostClock>,
    ) -> Self {
        GroupCommit {
            queue: Mutex::default(),
            written: Condvar::new(),
            writer: Mutex::new(Writer {
                journal,
                next_sequence: last_sequence + 1,
                totals,
                unapplied: Vec::new(),
            }),
            storage,
            clock,
        }
    }

    pub(super) fn totals(&self) -> TransitionTotals {
        self.writer.lock().totals
    }

    /// Writes down how many transitions there are, before the store is closed.
    pub(super) fn mark(&self) {
        let writer = self.writer.lock();
        writer.journal.mark(writer.next_sequence - 1);
    }

    /// Makes a transition durable; returns why not if it can't.
    pub(super) fn commit(&self, request: Request) -> Result<(), String> {
        let own = Arc::new(Waiting {
            request,
            outcome: OnceLock::new(),
        });
        let mut queue = self.queue.lock();
        queue.waiting.push(Arc::clone(&own));
        loop {
            if let Some(outcome) = own.outcome.get() {
                return outcome.clone();
            }
            if queue.led {
                self.written.wait(&mut queue);
                continue;
            }
            queue.led = true;
            let group = std::mem::take(&mut queue.waiting);
            MutexGuard::unlocked(&mut queue, || self.write(&group));
            queue.led = false;
            self.written.notify_all();
        }
    }

    fn write(&self, group: &[Arc<Waiting>]) {
        let mut writer = self.writer.lock();
        let entries: Vec<Entry<'static>> = group
            .iter()
            .zip(writer.next_sequence..)
            .map(|(waiting, sequence)| waiting.request.entry(sequence))
            .collect();
        let outcome = writer.journal.append(&entries);
        if outcome.is_ok() {
            writer.next_sequence += entries.len() as u64;
            for entry in &entries {
                writer.totals.count(entry.to);
            }
            writer.unapplied.extend(entries);
            self.apply(&mut writer);
        } else {
            writer.journal.give_up();
        }
        let outcome = outcome.map_err(|error| error.to_string());
        for waiting in group {
            // Nobody else sets it.
            let _ = waiting.outcome.set(outcome.clone());
        }
    }

    /// Puts into storage what only the journal has. What fails is kept for the next
    /// time.
    fn apply(&self, writer: &mut Writer) {
        let mut batch = Batch::default();
        let applied = put_entries(&self.storage, &mut batch, &writer.unapplied).and_then(|()| {
            self.clock.put_high_water(CLOCK_OWNER, &mut batch);
            put_applied_sequence(&mut batch, writer.next_sequence - 1);
            self.storage.apply(&batch)
        });
        match applied {
            Ok(()) => writer.unapplied.clear(),
            Err(error) => {
                tracing::error!(%error, "the journal has transitions that storage did not take");
            }
        }
    }

    /// Every transition, as the journal has it on disk.
    pub(super) fn read_journal(&self) -> Result<Option<Content>> {
        self.writer.lock().journal.read()
    }

    /// An error if storage lacks transitions that the journal has, after another try.
    pub(super) fn check_applied(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        if !writer.unapplied.is_empty() {
            self.apply(&mut writer);
        }
        if writer.unapplied.is_empty() {
            return Ok(());
        }
        Err(Error::storage("read the history")(
            "storage does not take the latest transitions; the journal has them",
        ))
    }
}

impl Request {
    fn entry(&self, sequence: u64) -> Entry<'static> {
        Entry {
            sequence,
            user_id: self.user_id,
            at_ns: self.at_ns,
            to: self.to,
            record: Cow::Owned(self.record.clone()),
        }
    }
}

/// Adds transitions to a batch: records and history together. Keys of a user's record
/// that do not parse are replaced by the one that does.
pub(super) fn put_entries(
    storage: &Storage,
    batch: &mut Batch,
    entries: &[Entry<'_>],
) -> Result<()> {
    for entry in entries {
        history::put(batch, entry);
        // In a rewritten journal only the latest transition of a user has a record.
        if entry.record.is_empty() {
            continue;
        }
        let prefix = entry.user_id.to_be_bytes();
        storage
            .partition(Partition::Memberships)
            .scan(&prefix, |key, _| {
                batch.delete(Partition::Memberships, key.to_vec());
                Ok(())
            })?;
        batch.put(
            Partition::Memberships,
            encode_key(EntityId(entry.user_id), Tag::CommunityLeave, b""),
            entry.record.to_vec(),
        );
    }
    Ok(())
}

/// Adds to a batch which transition is the last that the store has.
pub(super) fn put_applied_sequence(batch: &mut Batch, sequence: u64) {
    batch.put(
        Partition::System,
        applied_sequence_key(),
        sequence.to_be_bytes().to_vec(),
    );
}

fn applied_sequence_key() -> Vec<u8> {
    encode_key(EntityId(0), Tag::AppliedSequence, b"")
}
