//! The store that is damaged, what is known of it, and how it is looked at afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidegate::{Error, MembershipStatus, Scope, TidalDb, Transition};

use crate::support::{cohort, community, copy_folder, paths, signal, views};

/// Users 1 to this one; user `n` made `n % 4` transitions, a leave first.
const USERS: u64 = 40;
/// A user with a long history, at the end of which they had left.
const RESTLESS: u64 = 1_000;
const RESTLESS_TRANSITIONS: u64 = 201;
/// The one item that got signals.
const ITEM: u64 = 7;

/// A store that was closed, and what was acknowledged by it.
pub(super) struct Store {
    folder: TempDir,
    histories: BTreeMap<u64, Vec<Transition>>,
}

/// Files with their content.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// How far a damage may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// Every membership and history is still there, in the journal or in sled.
    OneWitness,
    /// What is lost shuts gates.
    BothWitnesses,
}

/// What became of an opening.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Works,
    Fails,
}

impl Store {
    /// Makes the store in two sessions, so that sled has a snapshot file and a log
    /// beyond it, with `between` called on the folder between the two.
    pub(super) fn new(between: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut histories = BTreeMap::new();
        let users = (1..=USERS).map(|user_id| (user_id, user_id % 4));
        let (first, second): (Vec<_>, Vec<_>) = users
            .chain([(RESTLESS, RESTLESS_TRANSITIONS)])
            .partition(|(user_id, _)| user_id % 2 == 1);
        {
            let db = TidalDb::open(folder.path()).unwrap();
            db.define_cohort("all", "true").unwrap();
            transition(&db, &first, &mut histories);
        }
        between(folder.path());
        {
            let db = TidalDb::open(folder.path()).unwrap();
            transition(&db, &second, &mut histories);
        }
        Store { folder, histories }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A copy of its folder.
    pub(super) fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(self.path(), copy.path());
        copy
    }

    /// Opens a damaged copy twice and checks it against what was acknowledged.
    pub(super) fn check(&self, folder: &Path, harm: Harm, what: &str) -> Opening {
        let before = files(folder);
        let opened = catch_unwind(AssertUnwindSafe(|| TidalDb::open(folder)))
            .unwrap_or_else(|_| panic!("{what}: opening panicked"));
        match opened {
            Ok(db) => self.check_memberships(&db, harm, what),
            Err(error) => {
                check_says_what_to_do(&error, what);
                check_nothing_is_gone(&before, &files(folder), what);
                return Opening::Fails;
            }
        }
        // What was repaired lasts, and what was shut stays shut.
        let db = TidalDb::open(folder).unwrap_or_else(|error| panic!("{what}: again: {error}"));
        self.check_memberships(&db, harm, &format!("{what}, opened again"));
        Opening::Works
    }

    fn check_memberships(&self, db: &TidalDb, harm: Harm, what: &str) {
        for (user_id, history) in &self.histories {
            let what = format!("{what}: user {user_id}");
            let last = history.last();
            let has_left = last.is_some_and(|last| last.to == MembershipStatus::Left);
            let status = db.community_layer_status(*user_id);
            let gated = signal(db, *user_id, ITEM).gated;
            if has_left {
                assert!(gated, "{what} left, and the gate is open");
                assert!(
                    !matches!(&status, Ok(found) if found.status == MembershipStatus::Active),
                    "{what} left, and reads as active"
                );
            }
            if harm == Harm::OneWitness {
                let status = status.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(gated, has_left, "{what}");
                assert_eq!(status.status == MembershipStatus::Left, has_left, "{what}");
                let left_at_ns = history
                    .iter()
                    .rfind(|transition| transition.to == MembershipStatus::Left)
                    .map(|transition| transition.at_ns);
                assert_eq!(status.left_at_ns, left_at_ns, "{what}");
                assert_eq!(
                    db.community_layer_history(*user_id).unwrap(),
                    *history,
                    "{what}"
                );
            }
        }
        if harm == Harm::OneWitness {
            let found = db.verify().unwrap();
            assert!(found.is_clean(), "{what}: {found:?}");
        }
    }

    /// Checks that no signal is lost: each user sent one before each transition, so
    /// those with an even number of transitions before it were let through.
    pub(super) fn check_aggregates(&self, folder: &Path) {
        let db = TidalDb::open(folder).unwrap();
        let transitions = || self.histories.values().map(Vec::len);
        let sent: usize = transitions().sum();
        let open: usize = transitions().map(|made| made.div_ceil(2)).sum();
        let expected = [
            (Scope::Base, sent),
            (cohort("all"), open),
            (community("film"), open),
        ];
        for (scope, expected) in expected {
            assert_eq!(views(&db, &scope, ITEM), expected as u64, "{scope}");
        }
    }
}

fn transition(db: &TidalDb, users: &[(u64, u64)], histories: &mut BTreeMap<u64, Vec<Transition>>) {
    for (user_id, transitions) in users {
        db.set_profile(*user_id, &tidegate::Profile::new()).unwrap();
        db.join_community(*user_id, "film").unwrap();
        for made in 0..*transitions {
            signal(db, *user_id, ITEM);
            if made % 2 == 0 {
                db.leave_community_layer(*user_id).unwrap();
            } else {
                db.rejoin_community_layer(*user_id).unwrap();
            }
        }
        let history = db.community_layer_history(*user_id).unwrap();
        assert_eq!(history.len() as u64, *transitions);
        for (made, transition) in history.iter().enumerate() {
            assert_eq!(transition.to == MembershipStatus::Left, made % 2 == 0);
        }
        histories.insert(*user_id, history);
    }
}

/// Checks that an error names the files and a way out.
fn check_says_what_to_do(error: &Error, what: &str) {
    let text = error.to_string();
    assert!(text.contains('`'), "{what}: no file is named: {text}");
    assert!(
        ["move", "restore", "put"]
            .iter()
            .any(|verb| text.contains(verb)),
        "{what}: no way out is named: {text}"
    );
    assert!(!text.contains("panicked"), "{what}: {text}");
}

/// Checks that a failed opening deleted nothing, made nothing anew and left the journal
/// alone. What sled does inside its own files is its own: it overwrites segments of
/// its data file that it can't read, and replaces its snapshot by a later one.
fn check_nothing_is_gone(before: &Files, after: &Files, what: &str) {
    let names = |files: &Files| -> Vec<String> {
        let is_snapshot = |path: &Path| path.to_string_lossy().contains("sled/snap.");
        files
            .keys()
            .map(|path| {
                if is_snapshot(path) {
                    "sled/snap.*".to_owned()
                } else {
                    path.display().to_string()
                }
            })
            .collect()
    };
    assert_eq!(names(before), names(after), "{what}: by a failed opening");
    for file in ["journal", "sled/conf"].map(Path::new) {
        assert_eq!(before.get(file), after.get(file), "{what}");
    }
}

/// Every file of a store with its content, but for the lock and the compiled
/// component.
fn files(folder: &Path) -> Files {
    paths(folder)
        .into_iter()
        .filter(|path| path != Path::new("lock") && !path.starts_with("component-cache"))
        .map(|path| {
            let bytes = fs::read(folder.join(&path)).unwrap();
            (path, bytes)
        })
        .collect()
}
