//! The gate: for each user with a record, what the policy lets through, and the
//! fence that makes a leave exact. DashMap is named nowhere else.
//!
//! # The fence
//!
//! A signal is forwarded inside [`Gate::pass`], from the look-up to the end of the
//! forwarding inside the user's shard, for absent users too. To take something away from a
//! user the shard is closed, which waits for those inside and keeps everybody else out. So
//! when [`Gate::shut`] returns, every signal of the user that was under way has been
//! forwarded in full, and every later one finds the gate shut. A signal that finds its
//! shard closed waits at the shard's turnstile, which whoever closes it holds, so signals
//! that never pause hold nobody up. What takes nothing away from a user with an entry
//! waits for nobody.
//!
//! DashMap's own lock would do the same, but each look-up writes it twice, and two
//! threads that pass it on to each other are slower than one. Signals therefore enter by
//! [`fence`], which writes nothing shared, and read the shard without its lock.
//!
//! # Locks
//!
//! The order of all locks in this crate, and so why no call can deadlock:
//!
//! 1. the pause of transitions, then one user's turn (`db::turns`); or the change
//!    lock (`ledger`)
//! 2. the rules (`db`), then their instance (`rules`); the ledger's commit lock, or, in `db::commit`,
//!    the writer of transitions, or whoever puts them into storage
//! 3. the queue of transitions (`db::commit`), which nobody holds while waiting for
//!    the writer, or those that wait for storage
//! 4. the turnstile of a shard, then that shard of the gate
//! 5. one stripe of the pending contributions (`ledger::pending`)
//!
//! A caller's output (`callers`) has locks of its own, which are held with no other. The gate
//! that [`Gate::narrow_to`] and [`Gate::take_over`] read is one that nobody else has, so its
//! shards do not count.
//!
//! A call that holds one takes others only from further down, and never two of
//! one line. While a shard is held, or a thread is inside one, nothing but memory is
//! touched: not the component, not storage, no code of a caller. Nothing inside `pass`
//! asks the gate again: it would wait at the turnstile for a writer that waits for it.

mod entry;
mod fence;
mod sync;

use std::num::NonZeroU64;
use std::sync::atomic::{self, Ordering};

use crossbeam_utils::CachePadded;
use dashmap::DashMap;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use thread_local::ThreadLocal;

use crate::membership::{CommunityMembership, FanOut, MembershipStatus};
use entry::{Entry, SharedEntry};
use fence::{Fence, Inside, Slot};

/// Many, for a shard that grows keeps signals out for as long as it takes to move its
/// users; and few enough for what every look-up needs of its shard to stay in the cache.
const SHARDS: usize = 128;

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
    /// Entries are added in `write` alone, with the shard closed or by a [`Filler`], and
    /// never taken out.
    entries: DashMap<u64, SharedEntry, RandomState>,
    /// What there is of a user without an entry, who never left: what the policy says, or
    /// nothing if transitions were lost and nobody knows whose.
    default: SharedEntry,
    fence: Fence,
    slots: ThreadLocal<Slot>,
    /// One for each shard of `entries`, held by whoever closes it or sets an entry that
    /// others can see.
    turnstiles: Box<[CachePadded<Mutex<()>>]>,
}

impl Gate {
    /// A gate without entries; `default` is what the policy lets through for users who
    /// never left.
    pub(crate) fn new(default: FanOut) -> Self {
        let never_left = CommunityMembership::never_left(0);
        let entries = DashMap::with_hasher_and_shard_amount(RandomState::default(), SHARDS);
        Gate {
            entries,
            default: SharedEntry::new(Entry::settled(&never_left, default)),
            fence: Fence::new(SHARDS),
            slots: ThreadLocal::new(),
            turnstiles: (0..SHARDS).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Calls `forward` with what a signal of this user may be added to, and keeps
    /// that true until it returns. `forward` must only touch memory, take no lock
    /// but a stripe of the pending contributions, and not ask the gate again.
    pub(crate) fn pass<R>(&self, user_id: u64, forward: impl FnOnce(FanOut) -> R) -> R {
        let hash = self.entries.hash_usize(&user_id);
        let shard = self.entries.determine_shard(hash);
        let inside = self.enter(shard);
        let outcome = forward(self.fan_out(&inside, shard, hash, user_id));
        drop(inside);
        outcome
    }

    fn enter(&self, shard: usize) -> Inside<'_> {
        let slot = self.slots.get().unwrap_or_else(|| self.make_slot());
        match self.fence.enter(slot, shard) {
            Some(inside) => inside,
            None => self.enter_later(slot, shard),
        }
    }

    #[cold]
    fn make_slot(&self) -> &Slot {
        let slot = self.slots.get_or_default();
        // Whoever closes a shard has one too, before looking for slots: either they find
        // this one, or this thread sees the shard closed.
        atomic::fence(Ordering::SeqCst);
        slot
    }

    /// Enters a shard that was closed, once it is open.
    #[cold]
    fn enter_later<'a>(&'a self, slot: &'a Slot, shard: usize) -> Inside<'a> {
        loop {
            drop(self.turnstiles[shard].lock());
            if let Some(inside) = self.fence.enter(slot, shard) {
                return inside;
            }
        }
    }

    /// What the gate lets through for a user in the shard that this thread is inside of.
    #[expect(
        unsafe_code,
        reason = "DashMap has no look-up without its lock, which every reader writes"
    )]
    fn fan_out(&self, _inside: &Inside<'_>, shard: usize, hash: usize, user_id: u64) -> FanOut {
        // SAFETY: the pointer is to the shard's table, which lives as long as `entries`.
        // It is changed in `write` alone, by a `Filler`, which borrows the gate as `&mut`,
        // or by a thread that has closed the shard, which means that no thread is inside;
        // this one is, until after the reference is gone. Entries that are in it change as
        // atomics.
        // Other threads inside, and those that hold the shard's lock for reading, read.
        let table = unsafe { &*self.entries.shards()[shard].data_ptr() };
        table
            .get(hash as u64, |(user, _)| *user == user_id)
            .map_or(&self.default, |(_, entry)| entry.get())
            .fan_out()
    }

    /// What fills the gate while nobody else has it.
    pub(crate) fn filler(&mut self) -> Filler<'_> {
        Filler { gate: self }
    }

    /// Shuts the gate for every user without an entry.
    pub(crate) fn shut_by_default(&mut self) {
        self.default.set(Entry {
            fan_out: FanOut::NONE,
            standing: Standing::Lost,
            ..self.default.get()
        });
    }

    /// What the gate says of this user; `None` if it has no entry and it is known that
    /// they never left.
    pub(crate) fn known(&self, user_id: u64) -> Option<Known> {
        let shard = self.entries.determine_map(&user_id);
        let turnstile = self.turnstiles[shard].lock();
        let entry = self.entry(user_id);
        drop(turnstile);
        let entry = entry.or_else(|| {
            let default = self.default.get();
            (default.standing != Standing::Settled).then_some(default)
        })?;
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
        self.change(user_id, || self.shut_entry(user_id, |standing| standing));
    }

    /// Shuts the gate for this user and says how far what is known of them can
    /// still be relied on.
    pub(crate) fn shut_as(&self, user_id: u64, standing: Standing) {
        self.change(user_id, || self.shut_entry(user_id, |_| standing));
    }

    /// Sets what storage holds for this user and what the policy makes of it.
    pub(crate) fn settle(&self, membership: &CommunityMembership, fan_out: FanOut) {
        self.change(membership.user_id, || Entry::settled(membership, fan_out));
    }

    /// Takes away from every user what `next` does not let through. When this returns, no
    /// signal that it would have held back is still under way.
    pub(crate) fn narrow_to(&self, next: &Gate) {
        let default = self.default.get();
        self.change_default(default.narrowed_to(next.default.get().fan_out));
        for (user_id, entry) in next.all() {
            self.change(user_id, || {
                let before = self.entry(user_id).unwrap_or(default);
                before.narrowed_to(entry.fan_out)
            });
        }
    }

    /// Sets the entries that `next` has. Whoever's latest transition failed here stays
    /// shut until one succeeds.
    pub(crate) fn take_over(&self, next: &Gate) {
        for (user_id, entry) in next.all() {
            let is_unsettled = |entry: Entry| entry.standing == Standing::Unsettled;
            if !self.entry(user_id).is_some_and(is_unsettled) {
                self.change(user_id, || entry);
            }
        }
        self.change_default(next.default.get());
    }

    fn all(&self) -> impl Iterator<Item = (u64, Entry)> {
        self.entries.iter().map(|entry| (*entry.key(), entry.get()))
    }

    /// Sets what there is of users without an entry, and waits for every signal that was
    /// let in by what was before.
    fn change_default(&self, default: Entry) {
        self.default.set(default);
        for (shard, turnstile) in self.turnstiles.iter().enumerate() {
            let _turnstile = turnstile.lock();
            drop(self.fence.close(shard, || self.slots.iter()));
        }
    }

    /// Sets a user's entry. If it takes something away, or there was none, no signal that
    /// was let in by what was before is still under way when this returns.
    fn change(&self, user_id: u64, entry: impl FnOnce() -> Entry) {
        let shard = self.entries.determine_map(&user_id);
        let _turnstile = self.turnstiles[shard].lock();
        let entry = entry();
        if let Some(shared) = self.entries.get(&user_id)
            && entry.is_as_open_as(&shared.get())
        {
            // Nobody has to be waited for, and the table does not change.
            shared.set(entry);
            return;
        }
        let _closed = self.fence.close(shard, || self.slots.iter());
        self.write(user_id, entry);
    }

    /// Sets a user's entry, or adds one. No thread is inside its shard. Others may write
    /// too: DashMap's own lock keeps them apart.
    fn write(&self, user_id: u64, entry: Entry) {
        match self.entries.entry(user_id) {
            dashmap::Entry::Occupied(shared) => shared.get().set(entry),
            dashmap::Entry::Vacant(place) => drop(place.insert(SharedEntry::new(entry))),
        }
    }

    /// What there is of a user, shut.
    fn shut_entry(&self, user_id: u64, standing: impl FnOnce(Standing) -> Standing) -> Entry {
        let never_left = CommunityMembership::never_left(user_id);
        let before = self
            .entry(user_id)
            .unwrap_or_else(|| Entry::settled(&never_left, FanOut::NONE));
        Entry {
            fan_out: FanOut::NONE,
            standing: standing(before.standing),
            ..before
        }
    }

    fn entry(&self, user_id: u64) -> Option<Entry> {
        self.entries.get(&user_id).map(|entry| entry.get())
    }

    /// Every user with an entry.
    pub(crate) fn users(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| *entry.key()).collect()
    }

    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        for entry in &self.entries {
            let entry = entry.get();
            match entry.standing {
                Standing::Malformed | Standing::Lost => census.malformed += 1,
                _ if entry.status == MembershipStatus::Left => census.left += 1,
                _ => {}
            }
        }
        census
    }
}

/// Fills a gate that no signal can be in: it borrows the gate as `&mut`. Threads may share
/// it, each for users of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filler<'a> {
    gate: &'a Gate,
}

impl Filler<'_> {
    /// See [`Gate::settle`].
    pub(crate) fn settle(self, membership: &CommunityMembership, fan_out: FanOut) {
        let entry = Entry::settled(membership, fan_out);
        self.gate.write(membership.user_id, entry);
    }

    /// See [`Gate::shut_as`].
    pub(crate) fn shut_as(self, user_id: u64, standing: Standing) {
        let entry = self.gate.shut_entry(user_id, |_| standing);
        self.gate.write(user_id, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32};
    use std::thread;
    use std::time::Duration;

    use super::*;

    const USER: u64 = 1;

    /// Four threads of which at least one is inside the gate at any time: without a
    /// turnstile, or a way to close the shard, it is never free.
    #[test]
    fn a_user_whose_signals_never_pause_can_leave() {
        let gate = Gate::new(FanOut::ALL);
        let (stop, inside) = (AtomicBool::new(false), AtomicU32::new(0));
        let signals = || {
            // Bounded, so that the test ends when it fails.
            for _ in 0..5_000 {
                if stop.load(Ordering::Relaxed) {
                    return true;
                }
                gate.pass(USER, |_| {
                    inside.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(1));
                });
            }
            false
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(signals)).collect();
            while inside.load(Ordering::Relaxed) < 8 {
                thread::yield_now();
            }
            gate.shut(USER);
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                assert!(thread.join().unwrap(), "the leave came after all signals");
            }
        });
        assert!(gate.pass(USER, |fan_out| fan_out == FanOut::NONE));
    }

    /// A leave of this user returns after the signal under way, or the test fails.
    fn check_fence(gate: &Gate) {
        check_waits(gate, || gate.shut(USER));
    }

    /// A change returns after the signal of the user that is under way.
    fn check_waits(gate: &Gate, change: impl FnOnce()) {
        let (entered, done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                gate.pass(USER, |_| {
                    entered.store(true, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(50));
                    done.store(true, Ordering::SeqCst);
                });
            });
            while !entered.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            change();
            assert!(done.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn a_leave_waits_for_signals_under_way() {
        let gate = Gate::new(FanOut::ALL);
        // First of a user without an entry, then of one that has an entry.
        check_fence(&gate);
        gate.settle(&CommunityMembership::never_left(USER), FanOut::ALL);
        check_fence(&gate);
    }

    /// Taking something away from everybody waits for signals under way, of users with an
    /// entry and without.
    #[test]
    fn narrowing_waits_for_signals_under_way() {
        for has_entry in [false, true] {
            let (gate, mut next) = (Gate::new(FanOut::ALL), Gate::new(FanOut::NONE));
            let membership = CommunityMembership::never_left(USER);
            if has_entry {
                gate.settle(&membership, FanOut::ALL);
                next.filler().settle(&membership, FanOut::NONE);
            }
            check_waits(&gate, || gate.narrow_to(&next));
            assert!(gate.pass(USER, |fan_out| fan_out == FanOut::NONE));
        }
    }

    #[test]
    fn a_user_without_an_entry_may_do_everything_unless_the_default_is_shut() {
        let mut gate = Gate::new(FanOut::ALL);
        assert!(gate.pass(USER, |fan_out| fan_out == FanOut::ALL));
        assert_eq!(gate.known(USER), None);
        gate.shut_by_default();
        assert!(gate.pass(USER, |fan_out| fan_out == FanOut::NONE));
        assert_eq!(gate.known(USER).unwrap().standing, Standing::Lost);
        gate.settle(&CommunityMembership::never_left(USER), FanOut::ALL);
        assert!(gate.pass(USER, |fan_out| fan_out == FanOut::ALL));
    }
}
