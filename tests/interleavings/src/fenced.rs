//! The fence of the gate on loom's atomics and threads.

#[path = "../../../host/src/gate/fence.rs"]
mod fence;
#[path = "scenarios.rs"]
pub(crate) mod scenarios;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(super) use loom::thread::yield_now;

    use loom::sync::atomic::fence;

    /// A barrier of each thread's own on both sides: loom knows no process-wide one, which
    /// orders all that this one does.
    #[derive(Debug)]
    pub(super) struct Barrier;

    #[expect(clippy::unused_self, reason = "the fence calls it like this")]
    impl Barrier {
        pub(super) fn new() -> Self {
            Barrier
        }

        pub(super) fn light(&self) {
            fence(Ordering::SeqCst);
        }

        pub(super) fn heavy(&self) {
            fence(Ordering::SeqCst);
        }
    }
}
