//! The fence between signals, which are many and enter a shard without writing anything
//! that another thread writes, and whoever changes the shard, who waits for them.
//!
//! A thread that enters says so in a slot of its own, then looks whether the shard is
//! closed. Whoever changes the shard closes it, then looks into all slots. All four are
//! sequentially consistent, so one of the two sees the other: a thread that does not see
//! the shard closed is one that is waited for. (A store of this kind is one exchange on
//! x86, half as slow as a store with a fence behind it.)
//!
//! Which slots there are, and that one thread at a time closes a shard, is left to
//! [`Gate`](super::Gate).

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, AtomicUsize, Ordering, fence, yield_now};

/// The value of a slot whose thread is in no shard.
const NOWHERE: usize = 0;

/// Where one thread says in which shard it is. On a cache line of its own, or threads
/// would slow each other down.
#[derive(Debug, Default)]
pub(super) struct Slot(CachePadded<AtomicUsize>);

/// Which shards are closed.
#[derive(Debug)]
pub(super) struct Fence {
    closed: Box<[AtomicBool]>,
}

/// A thread's stay in a shard.
#[derive(Debug)]
pub(super) struct Inside<'a> {
    slot: &'a Slot,
}

/// A shard that nobody is in and nobody enters.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    closed: &'a AtomicBool,
}

impl Fence {
    /// A fence in front of so many shards, all of them open.
    pub(super) fn new(shards: usize) -> Self {
        Fence {
            closed: (0..shards).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Enters a shard; `None` if it is closed. The slot is this thread's, which is in no
    /// shard.
    pub(super) fn enter<'a>(&self, slot: &'a Slot, shard: usize) -> Option<Inside<'a>> {
        // Sequentially consistent, with the two in `close`.
        slot.0.store(shard + 1, Ordering::SeqCst);
        let inside = Inside { slot };
        // The same; and an acquire, with the release when it is opened again: who enters
        // then sees what was changed.
        let closed = self.closed[shard].load(Ordering::SeqCst);
        (!closed).then_some(inside)
    }

    /// Closes a shard, and returns once nobody is in it. No other thread closes it
    /// meanwhile. `slots` are those of all threads, and are looked for after the shard
    /// is closed.
    pub(super) fn close<'a, S>(&self, shard: usize, slots: impl FnOnce() -> S) -> Closed<'_>
    where
        S: Iterator<Item = &'a Slot>,
    {
        // Sequentially consistent, with the two in `enter`.
        self.closed[shard].store(true, Ordering::SeqCst);
        let closed = Closed {
            closed: &self.closed[shard],
        };
        // With the one behind the making of a slot: a slot that is not found yet is of a
        // thread that will see the shard closed.
        fence(Ordering::SeqCst);
        for slot in slots() {
            // The same; and an acquire, with the release of whoever leaves: all that they
            // did is done.
            while slot.0.load(Ordering::SeqCst) == shard + 1 {
                yield_now();
            }
        }
        closed
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.slot.0.store(NOWHERE, Ordering::Release);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.closed.store(false, Ordering::Release);
    }
}
