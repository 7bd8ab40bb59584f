//! sled panics where its files are damaged. Here that becomes a value.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static CAUGHT_HERE: Cell<bool> = const { Cell::new(false) };
}

/// What a call returns, or what it says when it panics, which is not printed.
pub(super) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    keep_quiet();
    let outer = CAUGHT_HERE.replace(true);
    // What sled leaves behind when it panics is never relied on: what it keeps in
    // memory is checked by checksums on disk and by the journal at the next opening.
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    CAUGHT_HERE.set(outer);
    outcome.map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("it panicked").to_owned()
    })
}

/// Has panics that are caught here not printed, and all others as before.
fn keep_quiet() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CAUGHT_HERE.get() {
                before(panic);
            }
        }));
    });
}
