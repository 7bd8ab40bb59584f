//! The gate filled from what is known of transitions and the store's records, both in
//! the order of users, side by side. Reading the records is most of what opening a large
//! store costs, so each processor does it for some of the users.

use std::cmp::Ordering;
use std::ops::{Bound, RangeInclusive};
use std::thread;

use super::knowledge::Knowledge;
use super::{Doubt, Found};
use crate::db::opening::user_of_record;
use crate::error::{Error, Result};
use crate::gate::{Filler, Gate, Standing};
use crate::journal::format::Entry;
use crate::membership::MembershipStatus;
use crate::rules::{RESTORE_BATCH, Rules, StoredRecords};
use crate::storage::keys::{EntityId, entity_of};
use crate::storage::{Partition, Storage};

/// Fills the gate, and shuts it where something was lost or can't be read. `applied` is
/// the number of the last transition that the store has.
pub(super) fn fill(
    gate: &mut Gate,
    rules: &Rules,
    storage: &Storage,
    known: &Knowledge<'_>,
    applied: u64,
    doubt: Doubt,
) -> Result<Found> {
    if doubt.is_open() {
        gate.shut_by_default();
    }
    let gate = gate.filler();
    let filling = || Filling {
        gate,
        rules,
        applied,
        doubt,
        batch: Restoring::default(),
        found: Found::default(),
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let found = thread::scope(|scope| {
        let mut first = 0;
        // Collected, so that all run before one is waited for.
        let others: Vec<_> = known
            .cuts(processors)
            .into_iter()
            .map(|cut| {
                let users = first..=cut - 1;
                first = cut;
                let thread = thread::Builder::new()
                    .name("tidegate-opening".to_owned())
                    .spawn_scoped(scope, {
                        let users = users.clone();
                        || filling().fill(storage, known, users)
                    });
                (users, thread)
            })
            .collect();
        let own = filling().fill(storage, known, first..=u64::MAX);
        // And all are waited for, also where one failed.
        let parts: Vec<Result<Found>> = others
            .into_iter()
            .map(|(users, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| {
                    Err(Error::storage("read the records")(
                        "the thread that reads them ended",
                    ))
                }),
                // There may be no more threads than there are.
                Err(_) => filling().fill(storage, known, users),
            })
            .chain([own])
            .collect();
        let mut found = Found::default();
        for part in parts {
            found.add(part?);
        }
        Ok::<_, Error>(found)
    })?;
    // Last: a good record beside a malformed key does not open the gate.
    for user_id in &found.malformed_keys {
        gate.shut_as(*user_id, Standing::Malformed);
    }
    Ok(found)
}

/// The filling of the gate with some of the users.
struct Filling<'a> {
    gate: Filler<'a>,
    rules: &'a Rules,
    applied: u64,
    doubt: Doubt,
    batch: Restoring,
    found: Found,
}

/// Records that wait for the component.
#[derive(Default)]
struct Restoring {
    records: StoredRecords,
    expected: Vec<Expected>,
}

/// What is known of a record that the component has yet to read.
struct Expected {
    /// The standing that the user's last transition led to, if one is known.
    to: Option<MembershipStatus>,
    /// How far it can be relied on if the component can read it.
    standing: Standing,
}

impl Filling<'_> {
    fn fill(
        mut self,
        storage: &Storage,
        known: &Knowledge<'_>,
        users: RangeInclusive<u64>,
    ) -> Result<Found> {
        let mut latest = known.latest_of(&users).peekable();
        let from = match users.start() {
            // Keys too short to be of any user come before all others.
            0 => Vec::new(),
            first => first.to_be_bytes().to_vec(),
        };
        let to = users.end().checked_add(1).map(u64::to_be_bytes);
        let to = to
            .as_ref()
            .map_or(Bound::Unbounded, |to| Bound::Excluded(&to[..]));
        let partition = storage.partition(Partition::Memberships);
        partition.scan_range((Bound::Included(&from), to), |key, record| {
            let Some(user_id) = user_of_record(key) else {
                self.add_malformed_key(key);
                return Ok(());
            };
            while let Some(entry) = latest.next_if(|entry| entry.user_id <= user_id) {
                match entry.user_id.cmp(&user_id) {
                    Ordering::Equal => return self.add_known(&entry, Some(record)),
                    _ => self.add_known(&entry, None)?,
                }
            }
            self.add_unknown(user_id, record)
        })?;
        for entry in latest {
            self.add_known(&entry, None)?;
        }
        self.restore_batch()?;
        Ok(self.found)
    }

    /// Adds a user with a transition, and the user's record in the store, if any.
    fn add_known(&mut self, latest: &Entry<'_>, stored: Option<&[u8]>) -> Result<()> {
        let agree = stored == Some(&*latest.record);
        let may_be_later = latest.sequence < self.doubt.highest;
        if !agree && may_be_later && stored.is_some() {
            // The store's record may be of a transition that was lost since.
            self.found.contested.push(latest.user_id);
            self.gate.shut_as(latest.user_id, self.doubt.standing());
            return Ok(());
        }
        if !agree && latest.sequence <= self.applied && !latest.record.is_empty() {
            self.found.contradicted += 1;
        }
        let standing = if may_be_later && self.doubt.is_open() {
            Standing::Lost
        } else {
            Standing::Settled
        };
        self.restore(latest.user_id, &latest.record, Some(latest.to), standing)
    }

    /// Adds a user with a record of whom no transition is known.
    fn add_unknown(&mut self, user_id: u64, record: &[u8]) -> Result<()> {
        let standing = if self.doubt.is_open() {
            Standing::Lost
        } else {
            Standing::Settled
        };
        self.restore(user_id, record, None, standing)
    }

    fn add_malformed_key(&mut self, key: &[u8]) {
        match entity_of(key) {
            Some(EntityId(user_id)) => self.found.malformed_keys.push(user_id),
            None => self.found.unattributed += 1,
        }
    }

    fn restore(
        &mut self,
        user_id: u64,
        record: &[u8],
        to: Option<MembershipStatus>,
        standing: Standing,
    ) -> Result<()> {
        self.batch.records.push(user_id, record);
        self.batch.expected.push(Expected { to, standing });
        if self.batch.records.len() == RESTORE_BATCH {
            self.restore_batch()?;
        }
        Ok(())
    }

    fn restore_batch(&mut self) -> Result<()> {
        let Restoring { records, expected } = &mut self.batch;
        if records.len() == 0 {
            return Ok(());
        }
        let restored = self.rules.restore(records)?;
        for ((user_id, expected), restored) in records.users().iter().zip(&*expected).zip(restored)
        {
            match restored {
                // A component that contradicts the journal opens nothing.
                Some((membership, _)) if expected.to.is_some_and(|to| to != membership.status) => {
                    self.gate.shut_as(*user_id, Standing::Malformed);
                }
                Some((membership, fan_out)) if expected.standing == Standing::Settled => {
                    self.gate.settle(&membership, fan_out);
                }
                Some(_) => self.gate.shut_as(*user_id, expected.standing),
                None => self.gate.shut_as(*user_id, Standing::Malformed),
            }
        }
        records.clear();
        expected.clear();
        Ok(())
    }
}
