//! What every test file needs: stores, signals, and tools that may be missing.

pub(crate) mod component;
pub(crate) mod faults;
pub(crate) mod fuzz;
pub(crate) mod program;
pub(crate) mod rules;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tidegate::{Receipt, Scope, Signal, TidalDb};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A view of `item_id`, with the weight 1.
pub(crate) fn view(item_id: u64) -> Signal<'static> {
    Signal {
        item_id,
        kind: "view",
        weight: 1.0,
    }
}

pub(crate) fn signal(db: &TidalDb, user_id: u64, item_id: u64) -> Receipt {
    db.signal_with_context(user_id, &view(item_id)).unwrap()
}

/// How often a scope gained a view of `item_id`.
pub(crate) fn views(db: &TidalDb, scope: &Scope, item_id: u64) -> u64 {
    db.aggregate(scope, item_id, "view").unwrap().count
}

pub(crate) fn cohort(name: &str) -> Scope {
    Scope::Cohort(name.to_owned())
}

pub(crate) fn community(name: &str) -> Scope {
    Scope::Community(name.to_owned())
}

/// A user's attributes from a JSON object.
pub(crate) fn profile(json: &serde_json::Value) -> tidegate::Profile {
    json.as_object().unwrap().clone()
}

/// Says in one line that a test is skipped and how to run it; a failure where
/// `TIDEGATE_TESTS_COMPLETE` is set, so that nothing is skipped there.
pub(crate) fn skip(what: &str, how_to_run: &str) {
    let message = format!("skipped: {what}; to run it: {how_to_run}");
    assert!(
        std::env::var_os("TIDEGATE_TESTS_COMPLETE").is_none(),
        "{message}"
    );
    // Past the test runner, which shows only what a failing test prints.
    let _ = writeln!(std::io::stderr(), "{message}");
}
