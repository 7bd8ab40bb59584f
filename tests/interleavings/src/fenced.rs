//! The fence of the gate on loom's atomics and threads.

#[path = "../../../host/src/gate/fence.rs"]
mod fence;
#[path = "scenarios.rs"]
pub(crate) mod scenarios;

/// loom takes a sequentially consistent access for one that acquires or releases, and
/// models such fences alone. So a store of this kind is given as processors without one
/// make it: a release with a fence behind it.
mod sync {
    use loom::sync::atomic;
    pub(super) use loom::sync::atomic::{Ordering, fence};
    pub(super) use loom::thread::yield_now;

    #[derive(Debug, Default)]
    pub(super) struct AtomicUsize(atomic::AtomicUsize);

    impl AtomicUsize {
        pub(super) fn load(&self, ordering: Ordering) -> usize {
            self.0.load(ordering)
        }

        pub(super) fn store(&self, value: usize, ordering: Ordering) {
            self.0.store(value, ordering);
            fence_behind(ordering);
        }
    }

    #[derive(Debug)]
    pub(super) struct AtomicBool(atomic::AtomicBool);

    impl AtomicBool {
        pub(super) fn new(value: bool) -> Self {
            AtomicBool(atomic::AtomicBool::new(value))
        }

        pub(super) fn load(&self, ordering: Ordering) -> bool {
            self.0.load(ordering)
        }

        pub(super) fn store(&self, value: bool, ordering: Ordering) {
            self.0.store(value, ordering);
            fence_behind(ordering);
        }
    }

    fn fence_behind(store: Ordering) {
        if store == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
    }
}
