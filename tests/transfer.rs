//! The ways out of a store and back: backup and restore, export and import.

use std::io::Cursor;
use std::path::Path;

use serde_json::json;
use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Batch, Partition, StorageEngine as _};
use tidegate::{CommunityMembership, MembershipStatus, Scope, TidalDb, Transition};

use crate::support::program::Program;
use crate::support::{community, profile, signal, views};

const LEFT: u64 = 1;
const BACK: u64 = u64::MAX;
const NEVER_LEFT: u64 = 3;

fn fill(db: &TidalDb) {
    db.define_cohort("young", "age < 25").unwrap();
    for user_id in [LEFT, BACK, NEVER_LEFT] {
        db.set_profile(user_id, &profile(&json!({"age": 20})))
            .unwrap();
        db.join_community(user_id, "film").unwrap();
        signal(db, user_id, 7);
    }
    db.leave_community_layer(LEFT).unwrap();
    db.leave_community_layer(BACK).unwrap();
    db.rejoin_community_layer(BACK).unwrap();
    for user_id in [LEFT, BACK, NEVER_LEFT] {
        signal(db, user_id, 7);
    }
}

/// Deletes a user's later transitions from the store's history, as damage would.
fn forget_history_after(store: &Path, last: Transition) {
    let engine = SledEngine::open(&store.join("sled")).unwrap();
    let prefix = encode_key(EntityId(LEFT), Tag::Transition, b"");
    let mut batch = Batch::default();
    engine
        .scan(Partition::History, &prefix, &mut |key, _| {
            if key[prefix.len()..] > last.at_ns.to_be_bytes()[..] {
                batch.delete(Partition::History, key.to_vec());
            }
            Ok(())
        })
        .unwrap();
    engine.apply(&batch).unwrap();
    engine.flush().unwrap();
}

fn check_memberships(restored: &TidalDb, original: &TidalDb) {
    for user_id in [LEFT, BACK, NEVER_LEFT] {
        assert_eq!(
            restored.community_layer_status(user_id).unwrap(),
            original.community_layer_status(user_id).unwrap()
        );
        assert_eq!(
            restored.community_layer_history(user_id).unwrap(),
            original.community_layer_history(user_id).unwrap()
        );
    }
    assert!(restored.verify().unwrap().is_clean());
}

#[test]
fn a_store_made_from_a_backup_is_the_store_as_it_was() {
    let original = TidalDb::ephemeral().unwrap();
    fill(&original);
    let mut backup = Vec::new();
    original.backup(&mut backup).unwrap();
    let stats = original.stats();
    // Behind the backup, so not in it.
    signal(&original, NEVER_LEFT, 7);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restored");
    TidalDb::restore(&path, &mut Cursor::new(&backup)).unwrap();
    let restored = TidalDb::open(&path).unwrap();
    assert_eq!(restored.stats(), stats);
    check_memberships(&restored, &original);
    assert_eq!(views(&restored, &Scope::Base, 7), 6);
    assert_eq!(views(&restored, &community("film"), 7), 5);
    assert_eq!(restored.cohorts(), original.cohorts());
    assert!(signal(&restored, LEFT, 7).gated);
    let receipt = signal(&restored, BACK, 7);
    assert_eq!((receipt.cohorts, receipt.communities), (1, 1));
    // The journal made from it holds all of it too: numbers go on behind the last.
    restored.leave_community_layer(BACK).unwrap();
    assert_eq!(restored.community_layer_history(BACK).unwrap().len(), 3);
}

#[test]
fn a_damaged_backup_makes_no_store() {
    let original = TidalDb::ephemeral().unwrap();
    fill(&original);
    let mut backup = Vec::new();
    original.backup(&mut backup).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restored");
    let check = |bytes: &[u8], at: usize| {
        TidalDb::restore(&path, &mut Cursor::new(bytes)).expect_err(&at.to_string());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    };
    for at in (0..backup.len()).step_by(backup.len() / 25) {
        check(&backup[..at], at);
        let mut flipped = backup.clone();
        flipped[at] ^= 0x10;
        check(&flipped, at);
    }
    TidalDb::restore(&path, &mut Cursor::new(&backup)).unwrap();
    // There is a store now, which is not overwritten.
    TidalDb::restore(&path, &mut Cursor::new(&backup)).unwrap_err();
    assert!(TidalDb::open(&path).unwrap().verify().unwrap().is_clean());
}

#[test]
fn a_backup_while_others_leave_and_signal_is_of_one_moment() {
    let db = TidalDb::ephemeral().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..100 {
                    let user_id = thread * 1_000 + round;
                    db.join_community(user_id, "film").unwrap();
                    signal(db, user_id, 7);
                    db.leave_community_layer(user_id).unwrap();
                }
            });
        }
        for number in 0..5 {
            let mut backup = Vec::new();
            db.backup(&mut backup).unwrap();
            let path = folder.path().join(number.to_string());
            TidalDb::restore(&path, &mut Cursor::new(&backup)).unwrap();
            let restored = TidalDb::open(&path).unwrap();
            assert!(restored.verify().unwrap().is_clean());
            let stats = restored.stats();
            assert_eq!(views(&restored, &Scope::Base, 7), stats.signals);
            assert_eq!(stats.left_users, stats.leaves);
            assert_eq!(restored.verify().unwrap().records, stats.leaves);
        }
    });
}

#[test]
fn memberships_are_the_same_in_another_store() {
    let exporting = Program::new();
    {
        let db = TidalDb::open(exporting.path("store")).unwrap();
        fill(&db);
    }
    let lines = exporting.text(&["export", "--memberships"]);
    assert_eq!(lines.lines().count(), 2);
    exporting.text(&["export", "--memberships", "memberships.jsonl"]);
    assert_eq!(
        std::fs::read_to_string(exporting.path("memberships.jsonl")).unwrap(),
        lines
    );

    let importing = Program::new();
    importing.write("memberships.jsonl", &lines);
    let imported = importing.json(&["import", "memberships.jsonl"]);
    assert_eq!(imported, json!({"memberships": 2, "refused": 0}));
    assert_eq!(importing.text(&["export", "--memberships"]), lines);
    check_memberships(
        &TidalDb::open(importing.path("store")).unwrap(),
        &TidalDb::open(exporting.path("store")).unwrap(),
    );
    // As after an import that was interrupted.
    assert_eq!(importing.json(&["import", "memberships.jsonl"]), imported);
    assert_eq!(importing.text(&["export", "--memberships"]), lines);
    // A leave of the user's own is not written over, and holds up nobody else.
    importing.text(&["leave", &LEFT.to_string()]);
    let run = importing.run(&["--json", "import", "memberships.jsonl"]);
    assert_eq!(run.status, Some(1));
    assert_eq!(run.stdout, "{\"memberships\":1,\"refused\":1}\n");
    let complaint = "memberships.jsonl:1: ";
    assert!(run.stderr.contains(complaint), "{}", run.stderr);
    let reason = "has another history in this store";
    assert!(run.stderr.contains(reason), "{}", run.stderr);
}

#[test]
fn a_longer_history_is_imported_from_where_the_shorter_one_ends() {
    let db = TidalDb::ephemeral().unwrap();
    let at = |to, at_ns| Transition { to, at_ns };
    let (left, active) = (MembershipStatus::Left, MembershipStatus::Active);
    let transitions = [at(left, 5), at(active, 7), at(left, 9), at(active, 11)];
    let membership = |status, left_at_ns| CommunityMembership {
        user_id: LEFT,
        status,
        left_at_ns: Some(left_at_ns),
    };
    for (length, membership) in [
        (1, membership(left, 5)),
        (3, membership(left, 9)),
        (3, membership(left, 9)),
        (4, membership(active, 9)),
    ] {
        db.import_membership(&membership, &transitions[..length])
            .unwrap();
        assert_eq!(db.community_layer_status(LEFT).unwrap(), membership);
        assert_eq!(signal(&db, LEFT, 7).gated, membership.status == left);
        assert_eq!(
            db.community_layer_history(LEFT).unwrap(),
            transitions[..length]
        );
    }
    // Fewer than there are.
    db.import_membership(&membership(left, 5), &transitions[..1])
        .unwrap_err();
    assert!(db.verify().unwrap().is_clean());
}

#[test]
fn a_membership_that_its_history_does_not_lead_to_is_refused() {
    let db = TidalDb::ephemeral().unwrap();
    let at = |to, at_ns| Transition { to, at_ns };
    let membership = |status, left_at_ns| CommunityMembership {
        user_id: LEFT,
        status,
        left_at_ns,
    };
    let (left, active) = (MembershipStatus::Left, MembershipStatus::Active);
    for (membership, transitions) in [
        (membership(left, None), vec![]),
        (membership(active, Some(5)), vec![at(left, 5)]),
        (membership(left, Some(6)), vec![at(left, 5)]),
        (membership(left, Some(5)), vec![at(left, 5), at(left, 5)]),
        (membership(left, Some(5)), vec![at(active, 7), at(left, 5)]),
        (membership(left, None), vec![at(left, 0)]),
        (membership(left, Some(u64::MAX)), vec![at(left, u64::MAX)]),
    ] {
        db.import_membership(&membership, &transitions).unwrap_err();
        assert!(!signal(&db, LEFT, 7).gated);
        assert_eq!(db.community_layer_history(LEFT).unwrap(), []);
    }
    // An instant in the future is fine; the clock goes on above it.
    let future = 4_000_000_000_000_000_000;
    db.import_membership(&membership(left, Some(future)), &[at(left, future)])
        .unwrap();
    assert!(signal(&db, LEFT, 7).gated);
    db.leave_community_layer(NEVER_LEFT).unwrap();
    let later = db.community_layer_status(NEVER_LEFT).unwrap().left_at_ns;
    assert!(later > Some(future));
}

/// More than fit into one write.
#[test]
fn thousands_of_transitions_of_one_user_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let at = |at_ns: u64| Transition {
        to: if at_ns.is_multiple_of(3) {
            MembershipStatus::Left
        } else {
            MembershipStatus::Active
        },
        at_ns,
    };
    let transitions: Vec<Transition> = (1..=10_000).map(at).collect();
    let membership = CommunityMembership {
        user_id: LEFT,
        status: MembershipStatus::Active,
        left_at_ns: Some(9_999),
    };
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.import_membership(&membership, &transitions).unwrap();
        assert_eq!(db.community_layer_history(LEFT).unwrap(), transitions);
    }
    // From the journal alone.
    std::fs::remove_dir_all(folder.path().join("sled")).unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    assert_eq!(db.community_layer_history(LEFT).unwrap(), transitions);
    assert_eq!(db.community_layer_status(LEFT).unwrap(), membership);
    assert!(db.verify().unwrap().is_clean());
}

/// sled may have lost it, and the history that is left looks like one that goes on.
#[test]
fn a_history_that_the_gate_contradicts_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.leave_community_layer(LEFT).unwrap();
    }
    let left = TidalDb::open(folder.path())
        .unwrap()
        .community_layer_history(LEFT)
        .unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.rejoin_community_layer(LEFT).unwrap();
        db.leave_community_layer(LEFT).unwrap();
    }
    forget_history_after(folder.path(), left[0]);
    let db = TidalDb::open(folder.path()).unwrap();
    assert_eq!(db.community_layer_history(LEFT).unwrap(), left);
    let back = Transition {
        to: MembershipStatus::Active,
        at_ns: left[0].at_ns + 1,
    };
    let membership = CommunityMembership {
        user_id: LEFT,
        status: MembershipStatus::Active,
        left_at_ns: Some(left[0].at_ns),
    };
    db.import_membership(&membership, &[left[0], back])
        .unwrap_err();
    assert!(signal(&db, LEFT, 7).gated);
}
