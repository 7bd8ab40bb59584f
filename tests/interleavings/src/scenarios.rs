//! What threads do at once, and what must hold whatever the interleaving.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::fence::{Fence, Slot};

const SHARD: usize = 0;

/// A gate of one shard, with the fence beside this module.
struct Gate {
    fence: Fence,
    slots: [Slot; 2],
    turnstile: Mutex<()>,
    is_open: UnsafeCell<bool>,
    /// What each signalling thread has forwarded.
    forwarded: [UnsafeCell<u32>; 2],
}

impl Gate {
    fn new(is_open: bool) -> Arc<Self> {
        Arc::new(Gate {
            fence: Fence::new(1),
            slots: Default::default(),
            turnstile: Mutex::new(()),
            is_open: UnsafeCell::new(is_open),
            forwarded: [UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    /// One signal of the thread with this slot.
    #[expect(unsafe_code, reason = "loom checks each access")]
    fn signal(&self, thread: usize) {
        let inside = loop {
            match self.fence.enter(&self.slots[thread], SHARD) {
                Some(inside) => break inside,
                None => drop(self.turnstile.lock().unwrap()),
            }
        };
        if self.is_open.with(|is_open| unsafe { *is_open }) {
            self.forwarded[thread].with_mut(|forwarded| unsafe { *forwarded += 1 });
        }
        drop(inside);
    }

    #[expect(unsafe_code, reason = "loom checks each access")]
    fn set(&self, open: bool) {
        let turnstile = self.turnstile.lock().unwrap();
        let closed = self.fence.close(SHARD, || self.slots.iter());
        self.is_open.with_mut(|is_open| unsafe { *is_open = open });
        drop(closed);
        drop(turnstile);
    }

    /// What a thread has forwarded; an error of loom's if it still forwards.
    #[expect(unsafe_code, reason = "loom checks each access")]
    fn forwarded(&self, thread: usize) -> u32 {
        self.forwarded[thread].with(|forwarded| unsafe { *forwarded })
    }
}

/// A leave while a signal is under way: when it has returned, what was
/// forwarded is all there ever is.
pub(crate) fn leave_during_a_signal() {
    let gate = Gate::new(true);
    let signals = thread::spawn({
        let gate = Arc::clone(&gate);
        move || gate.signal(0)
    });
    gate.set(false);
    let at_return = gate.forwarded(0);
    signals.join().unwrap();
    assert_eq!(gate.forwarded(0), at_return);
}

pub(crate) fn leave_during_signals_of_two_threads() {
    let gate = Gate::new(true);
    let threads = [0, 1].map(|thread| {
        let gate = Arc::clone(&gate);
        thread::spawn(move || gate.signal(thread))
    });
    gate.set(false);
    let at_return = [gate.forwarded(0), gate.forwarded(1)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!([gate.forwarded(0), gate.forwarded(1)], at_return);
}

/// A leave after a rejoin, beside two signals: that the shard was open once
/// before does not let a signal through.
pub(crate) fn leave_after_a_rejoin() {
    let gate = Gate::new(false);
    let signals = thread::spawn({
        let gate = Arc::clone(&gate);
        move || {
            gate.signal(0);
            gate.signal(0);
        }
    });
    gate.set(true);
    gate.set(false);
    let at_return = gate.forwarded(0);
    signals.join().unwrap();
    assert_eq!(gate.forwarded(0), at_return);
}

/// Two threads change the shard, for two of its users.
pub(crate) fn two_changes_at_once() {
    let gate = Gate::new(true);
    let signals = thread::spawn({
        let gate = Arc::clone(&gate);
        move || gate.signal(0)
    });
    let other = thread::spawn({
        let gate = Arc::clone(&gate);
        move || gate.set(false)
    });
    gate.set(false);
    let at_return = gate.forwarded(0);
    signals.join().unwrap();
    other.join().unwrap();
    assert_eq!(gate.forwarded(0), at_return);
}
