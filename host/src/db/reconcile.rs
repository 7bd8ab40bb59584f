//! The journal and the store compared when a store is opened, and each repaired from
//! the other.
//!
//! Both number transitions without gaps, and of one user the transition with the
//! highest number counts. So:
//!
//! | found | done |
//! |---|---|
//! | the store lacks the last transitions | a crash: they are taken from the journal |
//! | the journal ends in a torn block | a crash: it is cut off; a copy is kept if both lack some |
//! | the store lacks or contradicts earlier ones | it is damaged: rewritten from the journal, told |
//! | the journal lacks some | it is damaged or gone: rewritten with what the store has of them, told |
//! | both lack some | nobody knows whose: every user without a later one is shut, told |
//!
//! That the last ones are lacking in both is known from the mark; see
//! [`crate::journal::mark`].

mod filling;
mod knowledge;
mod sequences;

use std::borrow::Cow;

use itertools::Itertools as _;

use super::commit::{self, TransitionTotals};
use crate::error::{Error, Result};
use crate::gate::{Gate, Standing};
use crate::journal::format::MAX_SEQUENCE;
use crate::journal::mark::Mark;
use crate::journal::{Content, Journal, Location};
use crate::membership::CommunityMembership;
use crate::rules::Rules;
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Batch, Partition, Storage};
use filling::fill;
use knowledge::Knowledge;

/// How many transitions one batch holds where many are written.
const ENTRIES_PER_BATCH: usize = 4096;

/// What opening found, beside what it put into the gate.
#[derive(Debug)]
pub(super) struct Reconciled {
    pub(super) journal: Journal,
    pub(super) last_sequence: u64,
    pub(super) highest_at_ns: u64,
    pub(super) totals: TransitionTotals,
    /// Records whose key names no user.
    pub(super) unattributed: u64,
    /// What neither the journal nor the store has, unless it was accepted.
    pub(super) loss: Loss,
}

/// Transitions that are nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) transitions: u64,
    /// The highest number among them; 0 if there are none.
    highest: u64,
}

impl Loss {
    /// How the store writes down that it was accepted.
    pub(super) fn encode(self) -> Vec<u8> {
        [self.transitions, self.highest]
            .map(u64::to_be_bytes)
            .concat()
    }
}

/// How far transitions that are nowhere put in doubt what is known of others.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The highest number that is missing: a user's last known transition below it may
    /// not be the last one. 0 if none is missing.
    highest: u64,
    /// Whether the loss was given up by whoever runs the store.
    accepted: bool,
}

impl Doubt {
    /// Whether everybody without a later transition is shut.
    fn is_open(self) -> bool {
        self.highest > 0 && !self.accepted
    }

    /// What becomes of a user whose record in the store is neither that of the last known
    /// transition nor surely an older one. Giving the loss up does not say which of the
    /// two is right.
    fn standing(self) -> Standing {
        if self.is_open() {
            Standing::Lost
        } else {
            Standing::Malformed
        }
    }
}

/// What the store's records are, compared with what is known.
#[derive(Debug, Default)]
struct Found {
    /// How many users' records the store had lost or changed.
    contradicted: u64,
    /// Users whose record may be of a transition that was lost since, in order.
    contested: Vec<u64>,
    /// Users with a record whose key is malformed.
    malformed_keys: Vec<u64>,
    /// Records whose key names no user.
    unattributed: u64,
}

impl Found {
    /// Adds what was found of users that come behind all others.
    fn add(&mut self, behind: Found) {
        self.contradicted += behind.contradicted;
        self.contested.extend(behind.contested);
        self.malformed_keys.extend(behind.malformed_keys);
        self.unattributed += behind.unattributed;
    }
}

/// Compares, repairs, and fills the gate.
pub(super) fn reconcile(
    location: &Location,
    storage: &Storage,
    rules: &Rules,
    gate: &mut Gate,
) -> Result<Reconciled> {
    let content = Content::read(location)?;
    let mark = Mark::read(location)?;
    let store_id = store_id(location, storage, content.as_ref(), mark)?;
    let marked = mark
        .filter(|mark| mark.store_id == store_id)
        .map_or(0, |mark| mark.last_sequence);
    let applied = number(storage, Tag::AppliedSequence)?.unwrap_or(0);

    let mut known = Knowledge::of_journal(content.as_ref());
    let claimed = known.sequences.highest().max(applied).max(marked);
    if known.sequences.missing(claimed) > 0 || content.is_none() {
        known.learn_from_store(storage)?;
    }
    let last_sequence = claimed.max(known.sequences.highest());
    let loss = Loss {
        transitions: known.sequences.missing(last_sequence),
        highest: known.sequences.highest_missing(last_sequence),
    };
    let key = encode_key(EntityId(0), Tag::AcceptedLoss, b"");
    let accepted = storage.partition(Partition::System).get(&key)?;
    let doubt = Doubt {
        highest: loss.highest,
        // Exactly what was accepted: a further loss is one more to tell.
        accepted: accepted.is_some_and(|accepted| accepted == loss.encode()),
    };

    let found = fill(gate, rules, storage, &known, applied, doubt)?;
    repair_store(storage, &known, &found, applied, last_sequence)?;
    let loss = if doubt.is_open() {
        loss
    } else {
        Loss::default()
    };
    let journal = open_journal(location, store_id, content.as_ref(), &known, loss)?;
    journal.mark(last_sequence);
    if loss.transitions > 0 {
        tracing::warn!(
            "{} transitions are neither in the journal nor in the store; the gate is shut for every user who has no later one: restore a backup, let users leave or rejoin again, or give the lost ones up with `verify --accept-loss`",
            loss.transitions
        );
    }
    Ok(Reconciled {
        journal,
        last_sequence,
        highest_at_ns: known.highest_at_ns,
        totals: known.totals,
        unattributed: found.unattributed,
        loss,
    })
}

/// What an opening with these rules would put into the gate. Nothing is repaired: that
/// was done when the store was opened, with the `loss` that there was.
pub(super) fn reread(
    content: Option<&Content>,
    storage: &Storage,
    rules: &Rules,
    loss: Loss,
) -> Result<Gate> {
    let applied = number(storage, Tag::AppliedSequence)?.unwrap_or(0);
    let mut known = Knowledge::of_journal(content);
    if known.sequences.missing(applied) > 0 || content.is_none() {
        known.learn_from_store(storage)?;
    }
    let doubt = Doubt {
        highest: known.sequences.highest_missing(applied),
        accepted: loss.transitions == 0,
    };
    let mut gate = Gate::new(rules.fan_out(&CommunityMembership::never_left(0))?);
    fill(&mut gate, rules, storage, &known, applied, doubt)?;
    Ok(gate)
}

/// Writes the journal of a store that was made without one.
pub(super) fn write_journal(location: &Location, storage: &Storage) -> Result<()> {
    let store_id = store_id(location, storage, None, None)?;
    let mut known = Knowledge::of_journal(None);
    known.learn_from_store(storage)?;
    Journal::replace(location, store_id, known.entries()).map(drop)
}

/// The number that ties store and journal together; a new one for a new store.
fn store_id(
    location: &Location,
    storage: &Storage,
    content: Option<&Content>,
    mark: Option<Mark>,
) -> Result<u64> {
    let stored = number(storage, Tag::StoreId)?;
    match (stored, content.and_then(Content::store_id)) {
        (Some(stored), Some(in_journal)) if stored != in_journal => Err(Error::Damaged {
            path: location.folder.clone(),
            reason: "its journal belongs to another store; put the right one back, or move this one away to have it made anew from the store".to_owned(),
        }),
        (Some(store_id), _) => Ok(store_id),
        (None, in_journal) => {
            let store_id = in_journal
                .or(mark.map(|mark| mark.store_id))
                .unwrap_or_else(random);
            let key = encode_key(EntityId(0), Tag::StoreId, b"");
            storage.partition(Partition::System).put(&key, &store_id.to_be_bytes())?;
            Ok(store_id)
        }
    }
}

/// A number that no other store has.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // Seeded by the operating system.
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// A number that the store keeps of itself.
fn number(storage: &Storage, tag: Tag) -> Result<Option<u64>> {
    let key = encode_key(EntityId(0), tag, b"");
    let Some(bytes) = storage.partition(Partition::System).get(&key)? else {
        return Ok(None);
    };
    let number = bytes
        .first_chunk()
        .map(|bytes| u64::from_be_bytes(*bytes))
        .filter(|number| bytes.len() == 8 && (tag == Tag::StoreId || *number <= MAX_SEQUENCE));
    let reason = format!("it is {bytes:02x?}, which it can't be");
    number
        .ok_or(reason)
        .map(Some)
        .map_err(Error::storage(format!("read the store's {tag:?}")))
}

/// Writes into the store what it lacks.
fn repair_store(
    storage: &Storage,
    known: &Knowledge<'_>,
    found: &Found,
    applied: u64,
    last: u64,
) -> Result<()> {
    if found.contradicted == 0 && applied == last {
        return Ok(());
    }
    if found.contradicted > 0 {
        tracing::warn!(
            "the store had lost or changed the records of {} users; all records and histories were written again from the journal",
            found.contradicted
        );
    }
    if applied == 0 && last > 0 {
        tracing::warn!("the store had no transitions; {last} were written from the journal");
    }
    let from = if found.contradicted > 0 { 0 } else { applied };
    let missing = known
        .entries()
        .filter(|entry| entry.sequence > from)
        .map(|mut entry| {
            if found.contested.binary_search(&entry.user_id).is_ok() {
                entry.record = Cow::Borrowed(&[]);
            }
            entry
        });
    for entries in &missing.chunks(ENTRIES_PER_BATCH) {
        let mut batch = Batch::default();
        for entry in entries {
            if !entry.record.is_empty() {
                commit::delete_keys(storage, &mut batch, entry.user_id)?;
            }
            commit::put_entry(&mut batch, &entry);
        }
        storage.apply(&batch)?;
    }
    let mut batch = Batch::default();
    commit::put_applied_sequence(&mut batch, last);
    storage.apply(&batch)?;
    storage.flush()
}

/// Opens the journal, or writes it anew if it lacks something or is worth compacting.
fn open_journal(
    location: &Location,
    store_id: u64,
    content: Option<&Content>,
    known: &Knowledge<'_>,
    loss: Loss,
) -> Result<Journal> {
    match content {
        Some(content) if content.damaged_bytes() == 0 && known.from_store == 0 => {
            // The first time, for later ends are torn by other crashes.
            if loss.transitions > 0
                && content.torn_bytes() > 0
                && !Journal::has_kept_damaged(location)?
            {
                let kept = Journal::keep_damaged(location, content)?;
                tracing::warn!(
                    "the end of the journal can't be read and was cut off; the whole one is kept as `{}`",
                    kept.display()
                );
            }
            if !content.is_worth_compacting() {
                return Journal::open(location, store_id, content);
            }
        }
        Some(content) => {
            let kept = Journal::keep_damaged(location, content)?;
            tracing::warn!(
                "the journal had {} damaged bytes and lacked {} transitions that the store has; it was written anew, and the old one is kept as `{}`",
                content.damaged_bytes(),
                known.from_store,
                kept.display()
            );
        }
        None if known.from_store == 0 => {}
        None => tracing::warn!(
            "the journal was missing; it was written anew from the {} transitions that the store has",
            known.from_store
        ),
    }
    Journal::replace(location, store_id, known.entries())
}
