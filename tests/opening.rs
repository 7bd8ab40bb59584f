//! A store with so many users that several threads read it when it is opened: what each
//! finds of its users is what one would find of all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Batch, Partition, StorageEngine as _};
use tidegate::{Error, MembershipStatus, TidalDb};

use crate::support::{forget_transitions, signal};

/// Enough for a compacted journal of several blocks, which is what users are divided by.
const USERS: u64 = 8_000;

/// Close together and far apart, up to both ends.
fn user(number: u64) -> u64 {
    match number {
        0..4_000 => number,
        _ => u64::MAX - (USERS - 1 - number) * 1_000_003,
    }
}

/// What is done to the record of every so many users.
const REJOINED_EACH: u64 = 3;
const DELETED_EACH: u64 = 7;
const CHANGED_EACH: u64 = 11;
const MALFORMED_KEY_EACH: u64 = 13;
const UNKNOWN_EACH: u64 = 17;

/// A user whom the journal does not know, behind one whom it does.
fn unknown(number: u64) -> u64 {
    user(number) + 5_000
}

fn is_each(number: u64, each: u64) -> bool {
    number % each == 1
}

/// A store that was opened since its users left, and where each of them stands.
fn store() -> (tempfile::TempDir, BTreeMap<u64, MembershipStatus>) {
    let folder = tempfile::tempdir().unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        for part in 0..8 {
            let db = &db;
            scope.spawn(move || {
                for number in (part..USERS).step_by(8) {
                    db.leave_community_layer(user(number)).unwrap();
                    if is_each(number, REJOINED_EACH) {
                        db.rejoin_community_layer(user(number)).unwrap();
                    }
                }
            });
        }
    });
    drop(db);
    // Compacts the journal.
    drop(TidalDb::open(folder.path()).unwrap());
    let journal = fs::read(folder.path().join("journal")).unwrap();
    let blocks = journal.windows(4).filter(|bytes| bytes == b"tgB1").count();
    assert!((4..10).contains(&blocks), "{blocks} blocks");
    let standings = (0..USERS).map(|number| {
        let status = if is_each(number, REJOINED_EACH) {
            MembershipStatus::Active
        } else {
            MembershipStatus::Left
        };
        (user(number), status)
    });
    (folder, standings.collect())
}

fn check(db: &TidalDb, standings: &BTreeMap<u64, MembershipStatus>) {
    for (user_id, standing) in standings {
        let status = db.community_layer_status(*user_id).unwrap();
        assert_eq!(status.status, *standing, "user {user_id}");
        let gated = *standing == MembershipStatus::Left;
        assert_eq!(signal(db, *user_id, 1).gated, gated, "user {user_id}");
    }
    let left = standings
        .values()
        .filter(|standing| **standing == MembershipStatus::Left);
    assert_eq!(db.stats().left_users, left.count() as u64);
}

fn change(store: &Path, batch: &Batch) {
    let engine = SledEngine::open(&store.join("sled")).unwrap();
    engine.apply(batch).unwrap();
    engine.flush().unwrap();
}

fn record_key(user_id: u64) -> Vec<u8> {
    encode_key(EntityId(user_id), Tag::CommunityLeave, b"")
}

/// Deletes the records of some users and changes those of others, who are returned in
/// order.
fn delete_and_change(batch: &mut Batch) -> Vec<u64> {
    let mut changed = Vec::new();
    for number in 0..USERS {
        let key = record_key(user(number));
        if is_each(number, DELETED_EACH) {
            batch.delete(Partition::Memberships, key);
        } else if is_each(number, CHANGED_EACH) {
            // Active, and nothing else: a gate that would be open.
            batch.put(Partition::Memberships, key, vec![0; 9]);
            changed.push(user(number));
        }
    }
    changed
}

#[test]
fn every_user_of_a_large_store_is_found_and_every_damaged_record_repaired() {
    let (folder, mut standings) = store();
    check(&TidalDb::open(folder.path()).unwrap(), &standings);

    let mut batch = Batch::default();
    delete_and_change(&mut batch);
    for number in (0..USERS).filter(|number| is_each(*number, UNKNOWN_EACH)) {
        // Left at the instant 1.
        let record = vec![1, 1, 0, 0, 0, 0, 0, 0, 0];
        batch.put(Partition::Memberships, record_key(unknown(number)), record);
        standings.insert(unknown(number), MembershipStatus::Left);
    }
    change(folder.path(), &batch);
    for _ in 0..2 {
        let db = TidalDb::open(folder.path()).unwrap();
        check(&db, &standings);
        // What the store had lost or changed was written again.
        let found = db.verify().unwrap();
        assert_eq!((found.malformed, found.lost), (Vec::new(), 0));
        assert_eq!(found.records, standings.len() as u64);
        assert_eq!(found.disagreeing, Vec::<u64>::new());
    }
}

/// What is left then lies in no order of the journal's, or has no records beside it.
#[test]
fn every_user_of_a_large_store_is_found_where_only_the_store_or_the_journal_is_left() {
    let (folder, standings) = store();
    fs::remove_file(folder.path().join("journal")).unwrap();
    check(&TidalDb::open(folder.path()).unwrap(), &standings);
    fs::remove_dir_all(folder.path().join("sled")).unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    check(&db, &standings);
    assert!(db.verify().unwrap().is_clean());
}

/// Nobody knows whether such a record is the later one, so it is not written over, and the
/// user stays shut when the loss was given up.
#[test]
fn a_record_beside_a_loss_is_kept_unless_it_is_what_the_journal_says() {
    const FORGOTTEN: u64 = u64::MAX / 2;
    let (folder, standings) = store();
    let db = TidalDb::open(folder.path()).unwrap();
    // The last of all: every other user's transitions come before it.
    db.leave_community_layer(FORGOTTEN).unwrap();
    drop(db);
    forget_transitions(folder.path(), FORGOTTEN);
    let mut batch = Batch::default();
    let contested = delete_and_change(&mut batch);
    change(folder.path(), &batch);

    let db = TidalDb::open(folder.path()).unwrap();
    for user_id in standings.keys() {
        assert!(signal(&db, *user_id, 1).gated, "user {user_id}");
    }
    assert_eq!(db.accept_loss().unwrap(), 1);
    drop(db);
    for _ in 0..2 {
        let db = TidalDb::open(folder.path()).unwrap();
        for (user_id, standing) in &standings {
            let status = db.community_layer_status(*user_id);
            let gated = signal(&db, *user_id, 1).gated;
            if contested.binary_search(user_id).is_ok() {
                assert!(gated, "user {user_id}");
                assert!(matches!(status, Err(Error::MalformedRecord { .. })));
            } else {
                assert_eq!(status.unwrap().status, *standing, "user {user_id}");
                assert_eq!(gated, *standing == MembershipStatus::Left);
            }
        }
    }
}

#[test]
fn every_malformed_key_of_a_large_store_shuts_its_user() {
    let (folder, standings) = store();
    let mut batch = Batch::default();
    let mut malformed = Vec::new();
    for number in (0..USERS).filter(|number| is_each(*number, MALFORMED_KEY_EACH)) {
        let key = match number % 2 {
            0 => encode_key(EntityId(user(number)), Tag::CommunityLeave, b"x"),
            _ => user(number).to_be_bytes().to_vec(),
        };
        batch.put(Partition::Memberships, key, vec![0; 9]);
        malformed.push(user(number));
    }
    let of_nobody: [&[u8]; 4] = [&[0], &[0; 7], &[127], &[255; 7]];
    for key in of_nobody {
        batch.put(Partition::Memberships, key.to_vec(), vec![0; 9]);
    }
    change(folder.path(), &batch);

    let db = TidalDb::open(folder.path()).unwrap();
    for (user_id, standing) in standings {
        if malformed.binary_search(&user_id).is_ok() {
            assert!(signal(&db, user_id, 1).gated, "user {user_id}");
            assert!(matches!(
                db.community_layer_status(user_id),
                Err(Error::MalformedRecord { .. })
            ));
        } else {
            let status = db.community_layer_status(user_id).unwrap().status;
            assert_eq!(status, standing, "user {user_id}");
        }
    }
    let found = db.verify().unwrap();
    assert_eq!(found.malformed, malformed);
    assert_eq!(found.unattributed, of_nobody.len() as u64);
    let all = malformed.len() + of_nobody.len();
    assert_eq!(db.stats().malformed_records, all as u64);
}
