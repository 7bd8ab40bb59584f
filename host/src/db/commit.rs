//! Group commit: transitions of different users, on different threads, share one sync
//! of the journal.
//!
//! Whoever comes while nobody writes becomes the leader and writes for all who wait, as far
//! as they fit into one block of the journal; who comes meanwhile waits and is in the next
//! group, and one of them leads it. When the journal is synced the transitions are durable.
//! They go into storage later, many in one batch, record and history of each together: when
//! somebody asks for what is there, at the next flush, or when many wait. What a crash takes
//! from storage comes back from the journal.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use parking_lot::Mutex;

use super::history;
use crate::clock::HostClock;
use crate::error::Result;
use crate::journal::format::Entry;
use crate::journal::{Content, Journal, blocks};
use crate::membership::{MembershipStatus, Transition};
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Batch, Partition, Storage};

/// How many transitions go into storage in one batch. While it is written nobody else
/// reads or writes storage.
const TRANSITIONS_PER_BATCH: usize = 256;

/// How many transitions may wait for storage before whoever commits more lends a hand.
const MAX_UNAPPLIED: usize = 1 << 16;

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

/// Transitions of a user that are to be made durable, all or none.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) user_id: u64,
    /// One, or up to [`blocks::MAX_TRANSITIONS`] in their order.
    pub(super) transitions: Vec<Transition>,
    /// The record of the last one.
    pub(super) record: Vec<u8>,
    /// Whether there may be keys of the user among the records that do not parse.
    pub(super) replaces_keys: bool,
}

/// A request and what became of it.
#[derive(Debug)]
struct Waiting {
    request: Request,
    /// The text of the error, if it failed.
    outcome: OnceLock<Result<(), String>>,
    /// Whether this request's thread is to write the next group.
    leads: AtomicBool,
    /// Who waits, parked.
    thread: Thread,
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
}

/// A transition that the journal has and storage does not.
#[derive(Debug)]
struct Unapplied {
    entry: Entry<'static>,
    replaces_keys: bool,
}

/// What makes transitions durable.
#[derive(Debug)]
pub(super) struct GroupCommit {
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    /// In the order of their numbers.
    unapplied: Mutex<VecDeque<Unapplied>>,
    /// Held while transitions go into storage, so that they do in their order.
    applying: Mutex<()>,
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
            writer: Mutex::new(Writer {
                journal,
                next_sequence: last_sequence + 1,
                totals,
            }),
            unapplied: Mutex::default(),
            applying: Mutex::default(),
            storage,
            clock,
        }
    }

    pub(super) fn totals(&self) -> TransitionTotals {
        self.writer.lock().totals
    }

    /// Writes down how many transitions there are, before the store is closed.
    pub(super) fn close(&self) {
        let mut writer = self.writer.lock();
        let last_sequence = writer.next_sequence - 1;
        writer.journal.close();
        writer.journal.mark(last_sequence);
    }

    /// Makes a transition durable; returns why not if it can't.
    pub(super) fn commit(&self, request: Request) -> Result<(), String> {
        let own = Arc::new(Waiting {
            request,
            outcome: OnceLock::new(),
            leads: AtomicBool::new(false),
            thread: thread::current(),
        });
        let leads_at_once = {
            let mut queue = self.queue.lock();
            queue.waiting.push(Arc::clone(&own));
            !std::mem::replace(&mut queue.led, true)
        };
        loop {
            if let Some(outcome) = own.outcome.get() {
                return outcome.clone();
            }
            // Acquire: what the leader before did to the queue is done.
            if leads_at_once || own.leads.load(Ordering::Acquire) {
                self.lead();
            } else {
                // May return for no reason.
                thread::park();
            }
        }
    }

    /// Writes a group, which the leader's own request is in as the first, and names the
    /// next leader.
    fn lead(&self) {
        let group: Vec<Arc<Waiting>> = {
            let waiting = &mut self.queue.lock().waiting;
            let groups = waiting.iter().map(|waiting| {
                let request = &waiting.request;
                (request.transitions.len(), request.record.len())
            });
            let length = blocks::fitting(groups).min(waiting.len());
            waiting.drain(..length).collect()
        };
        self.write(&group);
        let mut queue = self.queue.lock();
        match queue.waiting.first() {
            Some(next) => {
                next.leads.store(true, Ordering::Release);
                next.thread.unpark();
            }
            None => queue.led = false,
        }
    }

    fn write(&self, group: &[Arc<Waiting>]) {
        let outcome = self.append(group).map_err(|error| error.to_string());
        for waiting in group {
            // Nobody else sets it.
            let _ = waiting.outcome.set(outcome.clone());
            waiting.thread.unpark();
        }
        if self.unapplied.lock().len() > MAX_UNAPPLIED
            && let Err(error) = self.apply()
        {
            tracing::error!(%error, "the journal has transitions that storage did not take");
        }
    }

    /// Adds a group to the journal.
    fn append(&self, group: &[Arc<Waiting>]) -> Result<()> {
        let mut writer = self.writer.lock();
        let mut entries = Vec::with_capacity(group.len());
        let mut replaces_keys = Vec::with_capacity(group.len());
        for Waiting { request, .. } in group.iter().map(Arc::as_ref) {
            entries.extend(request.entries(writer.next_sequence + entries.len() as u64));
            replaces_keys.resize(entries.len(), request.replaces_keys);
        }
        if let Err(error) = writer.journal.append(&entries) {
            writer.journal.give_up();
            return Err(error);
        }
        writer.next_sequence += entries.len() as u64;
        for entry in &entries {
            writer.totals.count(entry.to);
        }
        let unapplied = entries.into_iter().zip(replaces_keys);
        // Before the writer is given up, or another group's could come first.
        self.unapplied
            .lock()
            .extend(unapplied.map(|(entry, replaces_keys)| Unapplied {
                entry,
                replaces_keys,
            }));
        Ok(())
    }

    /// Puts into storage what only the journal has; says whether there was something.
    /// What fails is kept for the next time.
    pub(super) fn apply(&self) -> Result<bool> {
        let _applying = self.applying.lock();
        let mut any = false;
        loop {
            let chunk: Vec<Unapplied> = {
                let mut unapplied = self.unapplied.lock();
                let length = unapplied.len().min(TRANSITIONS_PER_BATCH);
                unapplied.drain(..length).collect()
            };
            if chunk.is_empty() {
                return Ok(any);
            }
            if let Err(error) = self.apply_chunk(&chunk) {
                let mut unapplied = self.unapplied.lock();
                for transition in chunk.into_iter().rev() {
                    unapplied.push_front(transition);
                }
                return Err(error);
            }
            any = true;
        }
    }

    fn apply_chunk(&self, chunk: &[Unapplied]) -> Result<()> {
        let mut batch = Batch::default();
        for Unapplied {
            entry,
            replaces_keys,
        } in chunk
        {
            if *replaces_keys {
                delete_keys(&self.storage, &mut batch, entry.user_id)?;
            }
            put_entry(&mut batch, entry);
        }
        self.clock.put_high_water(CLOCK_OWNER, &mut batch);
        let last = chunk.last().map_or(0, |last| last.entry.sequence);
        put_applied_sequence(&mut batch, last);
        self.storage.apply(&batch)
    }

    /// Every transition, as the journal has it on disk.
    pub(super) fn read_journal(&self) -> Result<Option<Content>> {
        self.writer.lock().journal.read()
    }
}

impl Request {
    /// Its transitions under the numbers from `first` on.
    fn entries(&self, first: u64) -> impl Iterator<Item = Entry<'static>> {
        let last = self.transitions.len() - 1;
        (self.transitions.iter().enumerate()).map(move |(at, transition)| Entry {
            sequence: first + at as u64,
            user_id: self.user_id,
            at_ns: transition.at_ns,
            to: transition.to,
            record: Cow::Owned(if at == last {
                self.record.clone()
            } else {
                Vec::new()
            }),
        })
    }
}

/// Adds a transition to a batch: record and history together.
pub(super) fn put_entry(batch: &mut Batch, entry: &Entry<'_>) {
    history::put(batch, entry);
    // The record of a transition that a later one followed may be gone.
    if !entry.record.is_empty() {
        batch.put(
            Partition::Memberships,
            encode_key(EntityId(entry.user_id), Tag::CommunityLeave, b""),
            entry.record.to_vec(),
        );
    }
}

/// Adds to a batch the deletion of all keys of a user among the records, also of those
/// that do not parse.
pub(super) fn delete_keys(storage: &Storage, batch: &mut Batch, user_id: u64) -> Result<()> {
    storage
        .partition(Partition::Memberships)
        .scan(&user_id.to_be_bytes(), |key, _| {
            batch.delete(Partition::Memberships, key.to_vec());
            Ok(())
        })
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
