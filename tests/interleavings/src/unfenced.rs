//! The fence of the gate, its barrier taken out: what loom must find fault with.

#[path = "../../../host/src/gate/fence.rs"]
mod fence;
#[path = "scenarios.rs"]
#[expect(dead_code, reason = "one scenario is enough to find the fault")]
pub(crate) mod scenarios;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(super) use loom::thread::yield_now;

    #[derive(Debug)]
    pub(super) struct Barrier;

    #[expect(clippy::unused_self, reason = "the fence calls it like this")]
    impl Barrier {
        pub(super) fn new() -> Self {
            Barrier
        }

        pub(super) fn light(&self) {}

        pub(super) fn heavy(&self) {}
    }
}
