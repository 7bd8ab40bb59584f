//! Contributions on their way to storage, gathered in memory.
//!
//! They gather in stripes, and a thread always uses the same one. All that one
//! signal adds goes into one stripe under one lock, so whoever takes a stripe
//! takes whole signals, and threads do not wait for each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use crossbeam_utils::CachePadded;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::positions::{Positions, StoredPosition};
use super::scopes::ScopeId;
use super::weight::Millionths;

/// More stripes than cores, so that threads seldom share one.
const STRIPES_PER_CORE: usize = 4;

/// What signals did, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignalTotals {
    pub(crate) signals: u64,
    pub(crate) rejected: u64,
    pub(crate) cohort_contributions: u64,
    pub(crate) community_contributions: u64,
    pub(crate) gated_cohort_attribution: u64,
    pub(crate) gated_community_forwarding: u64,
}

impl SignalTotals {
    pub(super) fn add(&mut self, other: &SignalTotals) {
        self.signals += other.signals;
        self.rejected += other.rejected;
        self.cohort_contributions += other.cohort_contributions;
        self.community_contributions += other.community_contributions;
        self.gated_cohort_attribution += other.gated_cohort_attribution;
        self.gated_community_forwarding += other.gated_community_forwarding;
    }
}

/// How often something was contributed, and the sum of its weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) weight: Millionths,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.weight += other.weight;
    }
}

/// A signal that passed its checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contribution<'a> {
    pub(super) item_id: u64,
    pub(super) kind: &'a str,
    pub(super) weight: Millionths,
}

/// The contributions of some threads since they were last taken.
#[derive(Debug, Default)]
pub(super) struct Contributions {
    /// A kind is named here by its index among these.
    kinds: IndexSet<Box<str>, RandomState>,
    sums: std::collections::HashMap<(ScopeId, u32, u64), Sum, RandomState>,
    totals: SignalTotals,
    positions: Positions,
}

impl Contributions {
    pub(super) fn is_empty(&self) -> bool {
        // Every contribution is counted in the totals.
        self.totals == SignalTotals::default() && self.positions.is_empty()
    }

    pub(super) fn totals(&self) -> &SignalTotals {
        &self.totals
    }

    pub(super) fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Every sum, with its scope, item and kind.
    pub(super) fn sums(&self) -> impl Iterator<Item = (ScopeId, u64, &str, Sum)> {
        self.sums
            .iter()
            .filter_map(|((scope, kind, item_id), sum)| {
                let kind = self.kinds.get_index(*kind as usize)?;
                Some((*scope, *item_id, &**kind, *sum))
            })
    }

    pub(super) fn sum(&self, scope: ScopeId, item_id: u64, kind: &str) -> Option<Sum> {
        let kind = self.kinds.get_index_of(kind)?;
        let kind = u32::try_from(kind).ok()?;
        self.sums.get(&(scope, kind, item_id)).copied()
    }

    fn absorb(&mut self, other: &Contributions) {
        self.totals.add(&other.totals);
        self.positions.absorb(&other.positions);
        for (scope, item_id, kind, sum) in other.sums() {
            let kind = self.kind(kind);
            self.sums
                .entry((scope, kind, item_id))
                .or_default()
                .add(sum);
        }
    }

    fn kind(&mut self, kind: &str) -> u32 {
        let index = self
            .kinds
            .get_index_of(kind)
            .unwrap_or_else(|| self.kinds.insert_full(kind.into()).0);
        // Each kind fills memory, which is full long before 2^32 of them.
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}

/// One signal while it is added: to which scopes, and what is counted of it.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    contributions: &'a mut Contributions,
    kind: u32,
    item_id: u64,
    sum: Sum,
}

impl Recorder<'_> {
    /// Counts the signal and adds it to the base ledger.
    pub(crate) fn add_to_base(&mut self) {
        self.contributions.totals.signals += 1;
        self.add(ScopeId::BASE);
    }

    /// Notes how far an input was read, with this signal.
    pub(crate) fn advance(&mut self, input: &str, position: StoredPosition) {
        self.contributions.positions.set(input, position);
    }

    /// Adds the signal to the aggregate of each of these scopes; returns their
    /// number.
    pub(crate) fn add_to_each(&mut self, scopes: &[ScopeId]) -> u32 {
        for scope in scopes {
            self.add(*scope);
        }
        u32::try_from(scopes.len()).unwrap_or(u32::MAX)
    }

    fn add(&mut self, scope: ScopeId) {
        let key = (scope, self.kind, self.item_id);
        let sums = &mut self.contributions.sums;
        // Not through `entry`, which makes room for another sum each time.
        match sums.get_mut(&key) {
            Some(sum) => sum.add(self.sum),
            None => drop(sums.insert(key, self.sum)),
        }
    }

    pub(crate) fn totals(&mut self) -> &mut SignalTotals {
        &mut self.contributions.totals
    }
}

/// The stripes.
#[derive(Debug)]
pub(super) struct Pending {
    stripes: Box<[CachePadded<Mutex<Contributions>>]>,
}

impl Pending {
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        let stripes = (cores * STRIPES_PER_CORE).next_power_of_two();
        Pending {
            stripes: (0..stripes).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Lets `record` add one signal; nobody takes a part of it.
    pub(super) fn record<R>(
        &self,
        contribution: &Contribution<'_>,
        record: impl FnOnce(&mut Recorder<'_>) -> R,
    ) -> R {
        let mut contributions = self.stripe().lock();
        let kind = contributions.kind(contribution.kind);
        record(&mut Recorder {
            contributions: &mut contributions,
            kind,
            item_id: contribution.item_id,
            sum: Sum {
                count: 1,
                weight: contribution.weight,
            },
        })
    }

    pub(super) fn count_rejected(&self) {
        self.stripe().lock().totals.rejected += 1;
    }

    /// Notes how far an input was read, and how many of the records were refused.
    pub(super) fn advance(&self, input: &str, position: StoredPosition, rejected: u64) {
        let mut contributions = self.stripe().lock();
        contributions.positions.set(input, position);
        contributions.totals.rejected += rejected;
    }

    /// Takes everything that has gathered.
    pub(super) fn take(&self) -> Contributions {
        let mut all = Contributions::default();
        for stripe in &self.stripes {
            // The lock is held for the swap only; signals do not wait for the sum.
            let taken = std::mem::take(&mut *stripe.lock());
            all.absorb(&taken);
        }
        all
    }

    /// Puts back what was taken.
    pub(super) fn put_back(&self, taken: &Contributions) {
        self.stripe().lock().absorb(taken);
    }

    /// Calls `visit` with each stripe's contributions, one stripe after the other.
    pub(super) fn visit(&self, mut visit: impl FnMut(&Contributions)) {
        for stripe in &self.stripes {
            visit(&stripe.lock());
        }
    }

    fn stripe(&self) -> &Mutex<Contributions> {
        // The number of stripes is a power of two.
        &self.stripes[thread_number() & (self.stripes.len() - 1)]
    }
}

/// A number for this thread, the next unused one when it first asks.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        // Relaxed: the numbers only have to differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(Some(number));
        number
    })
}
