//! All that is known of transitions: what the journal has, and what it lacks and the
//! store's history has.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use itertools::Itertools as _;

use super::sequences::Sequences;
use crate::db::commit::TransitionTotals;
use crate::db::history;
use crate::error::Result;
use crate::journal::Content;
use crate::journal::format::{Entry, MAX_RECORD_BYTES};
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Partition, Storage};

#[derive(Debug)]
pub(super) struct Knowledge<'a> {
    content: Option<&'a Content>,
    /// What does not lie in order in the journal, in the order of users and of numbers.
    unordered: Vec<Entry<'a>>,
    /// How many of these the journal lacks.
    pub(super) from_store: usize,
    pub(super) sequences: Sequences,
    pub(super) totals: TransitionTotals,
    pub(super) highest_at_ns: u64,
}

impl<'a> Knowledge<'a> {
    /// What the journal has.
    pub(super) fn of_journal(content: Option<&'a Content>) -> Self {
        let mut known = Knowledge {
            content,
            unordered: content.map_or_else(Vec::new, |content| content.unordered().collect()),
            from_store: 0,
            sequences: Sequences::default(),
            totals: TransitionTotals::default(),
            highest_at_ns: 0,
        };
        // Stable, so that it is quick where they are in order.
        known.unordered.sort_by_key(Entry::order);
        for entry in content.into_iter().flat_map(Content::ordered) {
            known.count(&entry);
        }
        for entry in std::mem::take(&mut known.unordered) {
            known.count(&entry);
            known.unordered.push(entry);
        }
        known
    }

    /// Adds the transitions that the store's history has and the journal lacks.
    pub(super) fn learn_from_store(&mut self, storage: &Storage) -> Result<()> {
        let mut learned: Vec<Entry<'a>> = history::all(storage)?
            .into_iter()
            .map(|stored| Entry {
                sequence: stored.sequence,
                user_id: stored.user_id,
                at_ns: stored.transition.at_ns,
                to: stored.transition.to,
                record: Cow::Borrowed(&[][..]),
            })
            .filter(|entry| self.count(entry))
            .collect();
        learned.sort_by_key(Entry::order);
        // A record is of a user's last transition; where the journal has a later one,
        // that one's counts.
        let lasts: Vec<usize> = (0..learned.len())
            .filter(|at| {
                let next = learned.get(at + 1);
                next.is_none_or(|next| next.user_id != learned[*at].user_id)
            })
            .collect();
        for at in lasts {
            let key = encode_key(EntityId(learned[at].user_id), Tag::CommunityLeave, b"");
            let record = storage.partition(Partition::Memberships).get(&key)?;
            // A longer one is malformed, and would make its block of the journal unreadable.
            let record = record.filter(|record| record.len() <= MAX_RECORD_BYTES);
            learned[at].record = Cow::Owned(record.unwrap_or_default());
        }
        self.from_store += learned.len();
        self.unordered.append(&mut learned);
        self.unordered.sort_by_key(Entry::order);
        Ok(())
    }

    /// Every transition once, in the order of users and of numbers.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_of(&(0..=u64::MAX))
    }

    fn entries_of(&self, users: &RangeInclusive<u64>) -> impl Iterator<Item = Entry<'_>> {
        let unordered = &self.unordered;
        let from = unordered.partition_point(|entry| entry.user_id < *users.start());
        let to = unordered.partition_point(|entry| entry.user_id <= *users.end());
        let unordered = &unordered[from..to];
        self.content
            .into_iter()
            .flat_map({
                let users = users.clone();
                move |content| content.ordered_of(users.clone())
            })
            .merge_by(unordered.iter().cloned(), |left, right| {
                left.order() <= right.order()
            })
            .dedup_by(|left, right| left.order() == right.order())
    }

    /// Where to cut the user ids, for at most `parts` parts: the first user of each part but
    /// the first. Of what there is more of, transitions that lie in order or others, each
    /// part has about as many.
    pub(super) fn cuts(&self, parts: usize) -> Vec<u64> {
        let unordered = &self.unordered;
        let all = self.totals.leaves + self.totals.rejoins;
        let mut cuts: Vec<u64> = match self.content {
            Some(content) if all / 2 >= unordered.len() as u64 => content.cuts(parts),
            _ => (1..parts)
                .filter_map(|part| unordered.get(unordered.len() * part / parts))
                .map(|entry| entry.user_id)
                .collect(),
        };
        cuts.retain(|cut| *cut > 0);
        cuts.dedup();
        cuts
    }

    /// The last transition of each of these users, in the order of users.
    pub(super) fn latest_of(&self, users: &RangeInclusive<u64>) -> impl Iterator<Item = Entry<'_>> {
        self.entries_of(users).coalesce(|earlier, later| {
            if earlier.user_id == later.user_id {
                Ok(later)
            } else {
                Err((earlier, later))
            }
        })
    }

    fn count(&mut self, entry: &Entry<'_>) -> bool {
        let is_new = self.sequences.insert(entry.sequence);
        if is_new {
            self.totals.count(entry.to);
            self.highest_at_ns = self.highest_at_ns.max(entry.at_ns);
        }
        is_new
    }
}
