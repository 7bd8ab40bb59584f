//! What the fence is made of. `tests/interleavings` puts loom's in its place and runs
//! the fence through every interleaving that the memory model allows.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
pub(super) use std::thread::yield_now;
