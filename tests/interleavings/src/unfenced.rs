//! The fence of the gate with stores that only release and no barriers, which is what
//! loom takes its sequentially consistent stores for: it must find fault with that.

#[path = "../../../host/src/gate/fence.rs"]
mod fence;
#[path = "scenarios.rs"]
#[expect(dead_code, reason = "one scenario is enough to find the fault")]
pub(crate) mod scenarios;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(super) use loom::thread::yield_now;

    pub(super) fn fence(_: Ordering) {}
}
