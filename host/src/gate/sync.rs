//! What the fence is made of. `tests/interleavings` puts loom's in its place and runs
//! the fence through every interleaving that the memory model allows.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::thread::yield_now;

use std::sync::atomic::{compiler_fence, fence};

#[cfg(target_os = "linux")]
use rustix::thread::{MembarrierCommand, membarrier};

/// A barrier between a store and a later load, with a side that is passed often and one
/// that is passed seldom: of two threads that each store, pass one side, and load what
/// the other stored, at least one sees the other's value, if they pass different sides.
///
/// Linux can have all threads of a process pass a barrier at once. Whoever passes the
/// seldom side asks for that, and the often side costs nothing. Elsewhere both sides are
/// a barrier of the thread's own.
#[derive(Debug)]
pub(super) struct Barrier {
    is_process_wide: bool,
}

impl Barrier {
    pub(super) fn new() -> Self {
        #[cfg(target_os = "linux")]
        let is_process_wide = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
        #[cfg(not(target_os = "linux"))]
        let is_process_wide = false;
        Barrier { is_process_wide }
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
        #[cfg(target_os = "linux")]
        if self.is_process_wide {
            // It fails for want of memory alone; the slow one needs none. To go on
            // without either would be to let a signal through.
            while membarrier(MembarrierCommand::PrivateExpedited).is_err()
                && membarrier(MembarrierCommand::Global).is_err()
            {
                yield_now();
            }
        }
    }
}
