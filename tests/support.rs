//! What every test file needs: stores, signals, and tools that may be missing.

pub(crate) mod component;
pub(crate) mod faults;
pub(crate) mod fuzz;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod rules;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Batch, Partition, StorageEngine as _};
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

/// Every file in a folder and in those within, relative to it.
pub(crate) fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Copies all files of a folder.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for path in paths(from) {
        let copy = to.join(&path);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(from.join(path), copy).unwrap();
    }
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

/// Damages what the journal has of a user, and deletes what sled has.
pub(crate) fn forget_transitions(store: &Path, user_id: u64) {
    let mut journal = fs::read(store.join("journal")).unwrap();
    // A transition that had a sync of its own is a block of its own.
    let blocks = journal
        .windows(20)
        .enumerate()
        .filter(|(_, bytes)| bytes.starts_with(b"tgB1") && bytes[12..] == user_id.to_le_bytes());
    let starts: Vec<usize> = blocks.map(|(start, _)| start).collect();
    for start in starts {
        journal[start] ^= 0xFF;
    }
    fs::write(store.join("journal"), journal).unwrap();

    let engine = SledEngine::open(&store.join("sled")).unwrap();
    let mut batch = Batch::default();
    for partition in [Partition::Memberships, Partition::History] {
        let mut forget = |key: &[u8], _: &[u8]| {
            batch.delete(partition, key.to_vec());
            Ok(())
        };
        engine
            .scan(partition, &user_id.to_be_bytes(), &mut forget)
            .unwrap();
    }
    engine.apply(&batch).unwrap();
    engine.flush().unwrap();
}
