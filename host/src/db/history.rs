//! The history in storage: one key for each transition.

use crate::error::{Error, Result};
use crate::journal::Content;
use crate::journal::format::{Entry, is_sequence};
use crate::membership::{MembershipStatus, Transition};
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};
use crate::storage::{Batch, Partition, Storage};

const TRANSITIONS_PER_BATCH: usize = 4096;

/// A transition as storage has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) user_id: u64,
    pub(super) sequence: u64,
    pub(super) transition: Transition,
}

/// Adds a transition to a batch.
pub(super) fn put(batch: &mut Batch, entry: &Entry<'_>) {
    let mut value = entry.sequence.to_be_bytes().to_vec();
    value.extend_from_slice(entry.to.name().as_bytes());
    batch.put(
        Partition::History,
        encode_key(
            EntityId(entry.user_id),
            Tag::Transition,
            &entry.at_ns.to_be_bytes(),
        ),
        value,
    );
}

/// The transitions of one user, the oldest first.
pub(super) fn of_user(storage: &Storage, user_id: u64) -> Result<Vec<Transition>> {
    let mut transitions = Vec::new();
    let prefix = encode_key(EntityId(user_id), Tag::Transition, b"");
    storage
        .partition(Partition::History)
        .scan(&prefix, |key, value| {
            let stored = parse(key, value)
                .ok_or("it does not parse")
                .map_err(Error::storage(format!(
                    "read the history of user {user_id}"
                )))?;
            transitions.push(stored.transition);
            Ok(())
        })?;
    Ok(transitions)
}

/// Every transition that parses.
pub(super) fn all(storage: &Storage) -> Result<Vec<Stored>> {
    let mut stored = Vec::new();
    storage
        .partition(Partition::History)
        .scan(b"", |key, value| {
            stored.extend(parse(key, value));
            Ok(())
        })?;
    Ok(stored)
}

/// Writes again what storage lacks of the transitions that the journal has; returns how
/// many.
pub(super) fn restore(storage: &Storage, content: &Content) -> Result<u64> {
    let mut stored = all(storage)?;
    stored.sort_unstable_by_key(|stored| stored.sequence);
    let is_stored = |entry: &Entry<'_>| {
        let found = stored.binary_search_by_key(&entry.sequence, |stored| stored.sequence);
        found.is_ok_and(|at| {
            let Stored {
                user_id,
                transition,
                ..
            } = stored[at];
            (user_id, transition.at_ns, transition.to) == (entry.user_id, entry.at_ns, entry.to)
        })
    };
    let mut batch = Batch::default();
    let mut restored = 0;
    for entry in content.ordered().chain(content.unordered()) {
        if is_stored(&entry) {
            continue;
        }
        put(&mut batch, &entry);
        restored += 1;
        if batch.writes().len() == TRANSITIONS_PER_BATCH {
            storage.apply(&batch)?;
            batch = Batch::default();
        }
    }
    if restored > 0 {
        storage.apply(&batch)?;
        storage.flush()?;
    }
    Ok(restored)
}

fn parse(key: &[u8], value: &[u8]) -> Option<Stored> {
    let (EntityId(user_id), tag, at_ns) = parse_key(key)?;
    let (sequence, name) = value.split_first_chunk::<8>()?;
    let to = [MembershipStatus::Active, MembershipStatus::Left]
        .into_iter()
        .find(|status| status.name().as_bytes() == name)?;
    let sequence = u64::from_be_bytes(*sequence);
    (tag == Tag::Transition && is_sequence(sequence)).then_some(Stored {
        user_id,
        sequence,
        transition: Transition {
            to,
            at_ns: u64::from_be_bytes(at_ns.try_into().ok()?),
        },
    })
}
