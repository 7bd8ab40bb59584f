//! Records that can't be read: the gate is shut for their users, everything else
//! works, and a new leave or rejoin repairs them.

use std::path::Path;

use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Partition, StorageEngine as _};
use tidegate::{Error, MembershipStatus, TidalDb};

use crate::support::{forget_transitions, signal};

/// Writes a key and a value among the records, behind the store's back.
fn plant(store: &Path, key: &[u8], value: &[u8]) {
    let engine = SledEngine::open(&store.join("sled")).unwrap();
    engine.put(Partition::Memberships, key, value).unwrap();
    engine.flush().unwrap();
}

fn record_key(user_id: u64) -> Vec<u8> {
    encode_key(EntityId(user_id), Tag::CommunityLeave, b"")
}

#[test]
fn a_malformed_record_shuts_the_gate_until_it_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let records: [(u64, &[u8]); 5] = [
        (1, b""),
        (2, &[1; 8]),
        (3, &[1; 10]),
        (4, &[2, 0, 0, 0, 0, 0, 0, 0, 0]),
        (5, &[0; 2000]),
    ];
    drop(TidalDb::open(folder.path()).unwrap());
    for (user_id, record) in records {
        plant(folder.path(), &record_key(user_id), record);
    }

    let db = TidalDb::open(folder.path()).unwrap();
    for (user_id, _) in records {
        assert!(signal(&db, user_id, 7).gated);
        assert!(matches!(
            db.community_layer_status(user_id),
            Err(Error::MalformedRecord { user_id: named, .. }) if named == user_id
        ));
    }
    assert!(!signal(&db, 6, 7).gated, "others are not affected");
    assert_eq!(db.stats().malformed_records, 5);
    let found = db.verify().unwrap();
    assert_eq!(found.malformed, [1, 2, 3, 4, 5]);
    assert_eq!((found.records, found.left, found.is_clean()), (5, 0, false));

    db.leave_community_layer(1).unwrap();
    db.rejoin_community_layer(2).unwrap();
    assert!(signal(&db, 1, 7).gated);
    assert!(!signal(&db, 2, 7).gated);
    assert_eq!(db.verify().unwrap().malformed, [3, 4, 5]);
    assert_eq!(db.stats().malformed_records, 3);
    drop(db);

    let db = TidalDb::open(folder.path()).unwrap();
    let status = |user_id| db.community_layer_status(user_id).unwrap().status;
    assert_eq!(status(1), MembershipStatus::Left);
    assert_eq!(status(2), MembershipStatus::Active);
    assert!(signal(&db, 3, 7).gated);
}

#[test]
fn a_key_that_does_not_parse_shuts_the_gate_of_the_user_it_begins_with() {
    let folder = tempfile::tempdir().unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.leave_community_layer(1).unwrap();
        db.rejoin_community_layer(1).unwrap();
    }
    let trailing = encode_key(EntityId(1), Tag::CommunityLeave, b"x");
    let mut unknown_tag = record_key(2);
    unknown_tag[8] = 0xFF;
    for key in [&trailing[..], &unknown_tag, &3_u64.to_be_bytes(), b"abc"] {
        plant(folder.path(), key, &[0; 9]);
    }

    let db = TidalDb::open(folder.path()).unwrap();
    for user_id in [1, 2, 3] {
        assert!(signal(&db, user_id, 7).gated);
        assert!(matches!(
            db.community_layer_status(user_id),
            Err(Error::MalformedRecord { .. })
        ));
    }
    let found = db.verify().unwrap();
    assert_eq!(found.malformed, [1, 2, 3]);
    assert_eq!(found.unattributed, 1);
    assert_eq!(db.stats().malformed_records, 4);

    let left = db.community_layer_history(1).unwrap()[0];
    db.rejoin_community_layer(1).unwrap();
    assert_eq!(
        db.accept_loss().unwrap(),
        1,
        "the record that names no user"
    );
    let found = db.verify().unwrap();
    assert_eq!((found.unattributed, found.malformed), (0, vec![2, 3]));
    drop(db);
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(
        !signal(&db, 1, 7).gated,
        "the key that did not parse is gone"
    );
    assert_eq!(
        db.community_layer_status(1).unwrap().left_at_ns,
        Some(left.at_ns),
        "the boundary comes back from the history"
    );
}

#[test]
fn a_store_of_another_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(TidalDb::open(folder.path()).unwrap());
    {
        let engine = SledEngine::open(&folder.path().join("sled")).unwrap();
        let key = encode_key(EntityId(0), Tag::FormatVersion, b"");
        engine.put(Partition::System, &key, b"2").unwrap();
        engine.flush().unwrap();
    }
    assert!(matches!(
        TidalDb::open(folder.path()),
        Err(Error::StoreFormat { found, expected: 1, .. }) if found == "2"
    ));
}

#[test]
fn a_store_opens_once_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(matches!(
        TidalDb::open(folder.path()),
        Err(Error::StoreInUse { path }) if path == folder.path()
    ));
    drop(db);
    TidalDb::open(folder.path()).unwrap();
}

#[test]
fn transitions_that_were_lost_shut_the_gate_for_all_until_the_loss_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.leave_community_layer(1).unwrap();
        db.leave_community_layer(2).unwrap();
    }
    std::fs::remove_dir_all(folder.path().join("sled")).unwrap();
    std::fs::remove_file(folder.path().join("journal")).unwrap();

    for _ in 0..2 {
        let db = TidalDb::open(folder.path()).unwrap();
        for user_id in [1, 2, 4] {
            assert!(
                signal(&db, user_id, 7).gated,
                "nobody knows whose they were"
            );
            assert!(matches!(
                db.community_layer_status(user_id),
                Err(Error::MalformedRecord { .. })
            ));
        }
        assert_eq!(db.verify().unwrap().lost, 2);
        // A later transition of a user says where they stand.
        db.rejoin_community_layer(3).unwrap();
        db.leave_community_layer(5).unwrap();
        assert!(!signal(&db, 3, 7).gated);
    }

    assert_eq!(
        TidalDb::open(folder.path()).unwrap().accept_loss().unwrap(),
        2
    );
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(!signal(&db, 1, 7).gated);
    assert!(!signal(&db, 4, 7).gated);
    assert!(signal(&db, 5, 7).gated, "what is known still counts");
    assert!(db.verify().unwrap().is_clean());
    assert_eq!(db.accept_loss().unwrap(), 0);
    drop(db);

    // What was accepted was that loss, and no further one, though its numbers are lower
    // than the last of then.
    forget_transitions(folder.path(), 5);
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(signal(&db, 5, 7).gated);
    assert_eq!(db.verify().unwrap().lost, 4);
}

/// A journal that is made anew takes from the store what a journal can hold.
#[test]
fn a_record_that_is_too_long_for_the_journal_does_not_damage_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    {
        let db = TidalDb::open(path).unwrap();
        for user_id in [1, 2] {
            db.leave_community_layer(user_id).unwrap();
        }
    }
    plant(path, &record_key(1), &[1; 2_000]);
    std::fs::remove_file(path.join("journal")).unwrap();
    drop(TidalDb::open(path).unwrap());

    let journal = std::fs::read(path.join("journal")).unwrap();
    let db = TidalDb::open(path).unwrap();
    assert!(std::fs::read(path.join("journal")).unwrap() == journal);
    assert!(!path.join("journal.damaged").exists());
    assert!(signal(&db, 1, 7).gated);
    assert_eq!(db.verify().unwrap().malformed, [1]);
    assert_eq!(
        db.community_layer_status(2).unwrap().status,
        MembershipStatus::Left
    );
    // It is whole: with it alone everybody is as they were.
    drop(db);
    std::fs::remove_dir_all(path.join("sled")).unwrap();
    let db = TidalDb::open(path).unwrap();
    assert!(signal(&db, 1, 7).gated);
    assert!(signal(&db, 2, 7).gated);
    assert_eq!(db.verify().unwrap().lost, 0);
}
