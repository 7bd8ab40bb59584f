//! What the errors tell to do works.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate::TidalDb;

use super::store::{Harm, Opening, Store};
use crate::support::paths;

/// Checks that a copy of the store does not open and says all of `parts`.
fn check_refused(folder: &Path, parts: &[&str]) {
    let error = TidalDb::open(folder).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

fn snapshot(folder: &Path) -> PathBuf {
    let is_snapshot = |path: &PathBuf| path.to_string_lossy().contains("sled/snap.");
    let file = paths(folder).into_iter().find(is_snapshot).unwrap();
    folder.join(file)
}

#[test]
fn a_snapshot_that_was_emptied_is_moved_away_and_nothing_is_lost() {
    let store = Store::new(|_| ());
    let copy = store.copy();
    let snapshot = snapshot(copy.path());
    fs::write(&snapshot, b"").unwrap();
    let name = snapshot.file_name().unwrap().to_string_lossy();
    check_refused(copy.path(), &[&name, "move that file away"]);

    fs::rename(&snapshot, copy.path().join("away")).unwrap();
    store.check_aggregates(copy.path());
    let opening = store.check(copy.path(), Harm::OneWitness, "snapshot moved away");
    assert_eq!(opening, Opening::Works);
}

/// A process that was killed while it opened the store left one, sled took it for a
/// snapshot, and the store did not open again.
#[test]
fn a_snapshot_that_was_never_finished_is_in_nobodys_way() {
    let store = Store::new(|_| ());
    for length in [0, 5, usize::MAX] {
        let copy = store.copy();
        let snapshot = snapshot(copy.path());
        let mut bytes = fs::read(&snapshot).unwrap();
        bytes.truncate(length);
        fs::write(snapshot.with_added_extension("generating"), bytes).unwrap();
        store.check_aggregates(copy.path());
        let opening = store.check(copy.path(), Harm::OneWitness, "an unfinished snapshot");
        assert_eq!(opening, Opening::Works);
    }
}

#[test]
fn parameters_that_are_damaged_are_moved_away_and_nothing_is_lost() {
    let store = Store::new(|_| ());
    let copy = store.copy();
    let parameters = copy.path().join("sled/conf");
    fs::write(&parameters, "not what was here before").unwrap();
    check_refused(copy.path(), &["`conf`", "move that file away"]);

    fs::rename(&parameters, copy.path().join("away")).unwrap();
    store.check_aggregates(copy.path());
    let opening = store.check(copy.path(), Harm::OneWitness, "parameters moved away");
    assert_eq!(opening, Opening::Works);
}

#[test]
fn a_data_file_that_is_damaged_is_moved_away_and_memberships_come_back() {
    let store = Store::new(|_| ());
    for what in ["emptied", "deleted"] {
        let copy = store.copy();
        let data = copy.path().join("sled/db");
        match what {
            "emptied" => fs::write(data, b"").unwrap(),
            _ => fs::remove_file(data).unwrap(),
        }
        check_refused(copy.path(), &["`db`", "sled", "move the folder away"]);

        fs::rename(copy.path().join("sled"), copy.path().join("away")).unwrap();
        let opening = store.check(copy.path(), Harm::OneWitness, what);
        assert_eq!(opening, Opening::Works);
    }
}

#[test]
fn a_journal_of_another_store_is_moved_away_and_made_anew() {
    let (store, other) = (Store::new(|_| ()), Store::new(|_| ()));
    let copy = store.copy();
    let journal = copy.path().join("journal");
    fs::copy(other.path().join("journal"), &journal).unwrap();
    check_refused(copy.path(), &["another store", "move this one away"]);

    fs::rename(&journal, copy.path().join("away")).unwrap();
    store.check_aggregates(copy.path());
    let opening = store.check(copy.path(), Harm::OneWitness, "journal moved away");
    assert_eq!(opening, Opening::Works);
}
