//! The journal and the store compared when a store is opened, and each repaired from
//! the other.
//!
//! Both number transitions without gaps, and of one user the transition with the
//! highest number counts. So:
//!
//! | found | done |
//! |---|---|
//! | the store lacks the last transitions | a crash: they are taken from the journal |
//! | the journal ends in a torn frame | a crash: it is cut off |
//! | the store lacks or contradicts earlier ones | it is damaged: rewritten from the journal, told |
//! | the journal lacks some | it is damaged or gone: rewritten with what the store has of them, told |
//! | both lack some | nobody knows whose: every user without a later one is shut, told |
//!
//! That the last ones are lacking in both is known from the mark; see
//! [`crate::journal::mark`].

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::commit::{self, TransitionTotals};
use super::history::{self, Stored};
use super::opening::user_of_record;
use super::sequences::Sequences;
use crate::error::{Error, Result};
use crate::gate::{Gate, Standing};
use crate::journal::format::Entry;
use crate::journal::mark::Mark;
use crate::journal::{Content, Journal, Location};
use crate::membership::MembershipStatus;
use crate::rules::{RESTORE_BATCH, Rules, StoredRecords};
use crate::storage::keys::{EntityId, Tag, encode_key, entity_of};
use crate::storage::{Batch, Partition, Storage};

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

/// The latest transition of a user, wherever it was found.
#[derive(Debug)]
struct Latest<'a> {
    sequence: u64,
    to: MembershipStatus,
    record: Cow<'a, [u8]>,
    /// Whether the store's record was seen to be the same.
    confirmed: bool,
}

/// All that is known of transitions.
#[derive(Debug, Default)]
struct Knowledge<'a> {
    users: HashMap<u64, Latest<'a>, RandomState>,
    sequences: Sequences,
    totals: TransitionTotals,
    highest_at_ns: u64,
    /// Transitions that the journal lacks.
    from_store: Vec<Entry<'a>>,
}

impl<'a> Knowledge<'a> {
    fn add(&mut self, entry: &Entry<'a>) -> Result<bool> {
        if !self.sequences.insert(entry.sequence)? {
            return Ok(false);
        }
        self.totals.count(entry.to);
        self.highest_at_ns = self.highest_at_ns.max(entry.at_ns);
        let latest = self.users.entry(entry.user_id).or_insert_with(|| Latest {
            sequence: 0,
            to: entry.to,
            record: Cow::Borrowed(&[]),
            confirmed: false,
        });
        if entry.sequence > latest.sequence {
            latest.sequence = entry.sequence;
            latest.to = entry.to;
            latest.record.clone_from(&entry.record);
        }
        Ok(true)
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

    let mut known = Knowledge::default();
    for entry in content.iter().flat_map(Content::entries) {
        known.add(&entry)?;
    }
    let claimed = known.sequences.highest().max(applied).max(marked);
    if known.sequences.missing(claimed) > 0 || content.is_none() {
        learn_from_store(storage, &mut known)?;
    }
    let last_sequence = claimed.max(known.sequences.highest());
    let loss = Loss {
        transitions: known.sequences.missing(last_sequence),
        highest: known.sequences.highest_missing(last_sequence),
    };
    let key = encode_key(EntityId(0), Tag::AcceptedLoss, b"");
    let accepted = storage.partition(Partition::System).get(&key)?;
    // Exactly what was accepted: a further loss is one more to tell.
    let loss = if accepted.is_some_and(|accepted| accepted == loss.encode()) {
        Loss::default()
    } else {
        loss
    };

    let survey = survey(storage, &mut known)?;
    repair_store(storage, content.as_ref(), &known, applied, last_sequence)?;
    let journal = repair_journal(location, store_id, content.as_ref(), &known)?;
    journal.mark(last_sequence);

    fill(gate, rules, &known, &survey, loss.highest)?;
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
        unattributed: survey.unattributed,
        loss,
    })
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
    let bytes = bytes
        .as_slice()
        .try_into()
        .map_err(Error::storage(format!("read the store's {tag:?}")))?;
    Ok(Some(u64::from_be_bytes(bytes)))
}

/// Adds the transitions that the store's history has and the journal lacks.
fn learn_from_store(storage: &Storage, known: &mut Knowledge<'_>) -> Result<()> {
    let mut stored = history::all(storage)?;
    stored.sort_unstable_by_key(|stored| stored.sequence);
    // From the last to the first, so that the record is asked for once a user.
    for Stored {
        user_id,
        sequence,
        transition,
    } in stored.into_iter().rev()
    {
        let is_latest = known
            .users
            .get(&user_id)
            .is_none_or(|latest| latest.sequence < sequence);
        let record = if is_latest {
            let key = encode_key(EntityId(user_id), Tag::CommunityLeave, b"");
            storage
                .partition(Partition::Memberships)
                .get(&key)?
                .unwrap_or_default()
        } else {
            Vec::new()
        };
        let entry = Entry {
            sequence,
            user_id,
            at_ns: transition.at_ns,
            to: transition.to,
            record: Cow::Owned(record),
        };
        if known.add(&entry)? {
            known.from_store.push(entry);
        }
    }
    Ok(())
}

/// What the store's records are, compared with what is known.
#[derive(Debug, Default)]
struct Survey {
    /// Records of users of whom no transition is known.
    others: Vec<(u64, Vec<u8>)>,
    /// Users with a key among the records that does not parse.
    malformed_keys: Vec<u64>,
    unattributed: u64,
}

fn survey(storage: &Storage, known: &mut Knowledge<'_>) -> Result<Survey> {
    let mut survey = Survey::default();
    storage
        .partition(Partition::Memberships)
        .scan(b"", |key, record| {
            match (user_of_record(key), entity_of(key)) {
                (Some(user_id), _) => match known.users.get_mut(&user_id) {
                    Some(latest) => latest.confirmed = *latest.record == *record,
                    None => survey.others.push((user_id, record.to_vec())),
                },
                (None, Some(EntityId(user_id))) => survey.malformed_keys.push(user_id),
                (None, None) => survey.unattributed += 1,
            }
            Ok(())
        })?;
    Ok(survey)
}

/// Writes into the store what it lacks.
fn repair_store(
    storage: &Storage,
    content: Option<&Content>,
    known: &Knowledge<'_>,
    applied: u64,
    last: u64,
) -> Result<()> {
    let contradicted = known
        .users
        .values()
        .filter(|latest| !latest.confirmed && !latest.record.is_empty())
        .filter(|latest| latest.sequence <= applied)
        .count();
    if contradicted > 0 {
        tracing::warn!(
            "the store had lost or changed the records of {contradicted} users; all records and histories were written again from the journal"
        );
    }
    let from = if contradicted > 0 { 0 } else { applied };
    let mut missing: Vec<Entry<'_>> = content
        .iter()
        .flat_map(|content| content.entries())
        // What the journal lacks may be later than what it has of the same user.
        .chain(known.from_store.iter().cloned())
        .filter(|entry| entry.sequence > from)
        .collect();
    if missing.is_empty() && applied == last {
        return Ok(());
    }
    if applied == 0 && last > 0 {
        tracing::warn!("the store had no transitions; {last} were written from the journal");
    }
    missing.sort_unstable_by_key(|entry| entry.sequence);
    for entries in missing.chunks(ENTRIES_PER_BATCH) {
        let mut batch = Batch::default();
        commit::put_entries(storage, &mut batch, entries)?;
        storage.apply(&batch)?;
    }
    let mut batch = Batch::default();
    commit::put_applied_sequence(&mut batch, last);
    storage.apply(&batch)?;
    storage.flush()
}

/// Opens the journal, or writes it anew if it lacks something.
fn repair_journal(
    location: &Location,
    store_id: u64,
    content: Option<&Content>,
    known: &Knowledge<'_>,
) -> Result<Journal> {
    match content {
        Some(content) if content.damaged_bytes() == 0 && known.from_store.is_empty() => {
            return Journal::open(location, store_id, content);
        }
        Some(content) => {
            let kept = Journal::keep_damaged(location, content)?;
            tracing::warn!(
                "the journal had {} damaged bytes and lacked {} transitions that the store has; it was written anew, and the old one is kept as `{}`",
                content.damaged_bytes(),
                known.from_store.len(),
                kept.display()
            );
        }
        None if known.from_store.is_empty() => {}
        None => tracing::warn!(
            "the journal was missing; it was written anew from the {} transitions that the store has",
            known.from_store.len()
        ),
    }
    let mut entries: Vec<Entry<'_>> = content
        .iter()
        .flat_map(|content| content.entries())
        .chain(known.from_store.iter().cloned())
        .collect();
    entries.sort_unstable_by_key(|entry| (entry.user_id, entry.sequence));
    for entry in &mut entries {
        let latest = known.users.get(&entry.user_id);
        if latest.is_some_and(|latest| latest.sequence > entry.sequence) {
            entry.record = Cow::Borrowed(&[]);
        }
    }
    entries.dedup_by_key(|entry| entry.sequence);
    Journal::replace(location, store_id, entries.into_iter())
}

/// Fills the gate with what is known, and shuts it where something was lost.
fn fill(
    gate: &mut Gate,
    rules: &Rules,
    known: &Knowledge<'_>,
    survey: &Survey,
    doubtful_up_to: u64,
) -> Result<()> {
    let others = survey
        .others
        .iter()
        .map(|(user_id, record)| (*user_id, record.as_slice()));
    let known_records = known
        .users
        .iter()
        .map(|(user_id, latest)| (*user_id, &*latest.record));
    let mut records = StoredRecords::default();
    for (user_id, record) in known_records.chain(others) {
        records.push(user_id, record);
        if records.len() == RESTORE_BATCH {
            restore_batch(gate, rules, &mut records)?;
        }
    }
    restore_batch(gate, rules, &mut records)?;

    // A component that contradicts the journal opens nothing.
    for (user_id, latest) in &known.users {
        if gate.known(*user_id).is_some_and(|known| {
            known.standing == Standing::Settled && known.membership.status != latest.to
        }) {
            gate.shut_as(*user_id, Standing::Malformed);
        }
    }
    if doubtful_up_to > 0 {
        gate.shut_by_default();
        for (user_id, latest) in &known.users {
            if latest.sequence < doubtful_up_to {
                gate.shut_as(*user_id, Standing::Lost);
            }
        }
        for (user_id, _) in &survey.others {
            gate.shut_as(*user_id, Standing::Lost);
        }
    }
    // Last: a good record beside a malformed key does not open the gate.
    for user_id in &survey.malformed_keys {
        gate.shut_as(*user_id, Standing::Malformed);
    }
    Ok(())
}

fn restore_batch(gate: &Gate, rules: &Rules, records: &mut StoredRecords) -> Result<()> {
    if records.len() == 0 {
        return Ok(());
    }
    for (user_id, restored) in records.users().iter().zip(rules.restore(records)?) {
        match restored {
            Some((membership, fan_out)) => gate.settle(&membership, fan_out),
            None => gate.shut_as(*user_id, Standing::Malformed),
        }
    }
    records.clear();
    Ok(())
}
