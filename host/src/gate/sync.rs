//! What the fence is made of. `tests/interleavings` puts loom's in its place and runs
//! the fence through every interleaving that the memory model allows.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::thread::yield_now;

use std::sync::atomic::{AtomicU64, compiler_fence, fence};

use parking_lot::Mutex;
#[cfg(target_os = "linux")]
use rustix::thread::{MembarrierCommand, membarrier};

/// A barrier between a store and a later load, with a side that is passed often and one
/// that is passed seldom: of two threads that each store, pass one side, and load what
/// the other stored, at least one sees the other's value, if they pass different sides.
///
/// Linux can have all threads of a process pass a barrier at once. Whoever passes the
/// seldom side asks for that, one thread for all who wait, and the often side costs
/// nothing. Elsewhere both sides are a barrier of the thread's own.
#[derive(Debug)]
pub(super) struct Barrier {
    is_process_wide: bool,
    /// How many process-wide barriers were begun.
    begun: AtomicU64,
    /// The number of the last one that is done.
    done: Mutex<u64>,
}

impl Barrier {
    pub(super) fn new() -> Self {
        #[cfg(target_os = "linux")]
        let is_process_wide = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
        #[cfg(not(target_os = "linux"))]
        let is_process_wide = false;
        Barrier {
            is_process_wide,
            begun: AtomicU64::new(0),
            done: Mutex::new(0),
        }
    }

    /// The side that is passed often.
    pub(super) fn light(&self) {
        if self.is_process_wide {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The side that is passed seldom.
    pub(super) fn heavy(&self) {
        fence(Ordering::SeqCst);
        if !self.is_process_wide {
            return;
        }
        // One that begins from here on serves. SeqCst: so that what was stored before is
        // seen by who begins it.
        let needed = self.begun.load(Ordering::SeqCst) + 1;
        // Others that are about to wait for one may do so now.
        yield_now();
        let mut done = self.done.lock();
        if *done < needed {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            process_wide_barrier();
            *done = number;
        }
    }
}

#[cfg(target_os = "linux")]
fn process_wide_barrier() {
    // It fails for want of memory alone; the slow one needs none. To go on without either
    // would be to let a signal through.
    while membarrier(MembarrierCommand::PrivateExpedited).is_err()
        && membarrier(MembarrierCommand::Global).is_err()
    {
        yield_now();
    }
}

#[cfg(not(target_os = "linux"))]
fn process_wide_barrier() {}
