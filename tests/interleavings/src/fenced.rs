//! The fence of the gate on loom's atomics and threads.

#[path = "../../../host/src/gate/fence.rs"]
mod fence;
#[path = "scenarios.rs"]
pub(crate) mod scenarios;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
    pub(super) use loom::thread::yield_now;
}
