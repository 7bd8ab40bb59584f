//! The journal is compacted when a store is opened: smaller, in the order of users, and
//! as good a witness as before.

use std::fs;
use std::path::Path;

use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Batch, Partition, StorageEngine as _};
use tidegate::{Error, MembershipStatus, TidalDb, Transition};

use crate::support::signal;

const USERS: u64 = 40;
const ROUNDS: u64 = 25;

/// A store with many transitions, the histories that it had, and its journal's length.
fn busy_store() -> (tempfile::TempDir, Vec<Vec<Transition>>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    for round in 0..ROUNDS {
        for user_id in 0..USERS {
            // Odd users are back in the end.
            if (round + user_id).is_multiple_of(2) {
                db.leave_community_layer(user_id).unwrap();
            } else {
                db.rejoin_community_layer(user_id).unwrap();
            }
        }
    }
    let histories = (0..USERS)
        .map(|user_id| db.community_layer_history(user_id).unwrap())
        .collect();
    drop(db);
    let length = fs::metadata(folder.path().join("journal")).unwrap().len();
    (folder, histories, length)
}

fn check(db: &TidalDb, histories: &[Vec<Transition>]) {
    for (user_id, history) in (0..USERS).zip(histories) {
        assert_eq!(history.len() as u64, ROUNDS);
        assert!(db.community_layer_history(user_id).unwrap() == *history);
        let left = user_id.is_multiple_of(2);
        assert_eq!(signal(db, user_id, 1).gated, left, "user {user_id}");
        let status = db.community_layer_status(user_id).unwrap().status;
        assert_eq!(status == MembershipStatus::Left, left);
    }
    assert!(db.verify().unwrap().is_clean());
}

#[test]
fn a_compacted_journal_has_every_transition_in_half_the_room() {
    let (folder, histories, length) = busy_store();
    let journal = folder.path().join("journal");
    check(&TidalDb::open(folder.path()).unwrap(), &histories);
    let compacted = fs::metadata(&journal).unwrap().len();
    // 17 bytes a transition and 23 a user, as `journal::blocks` says, and two headers.
    assert_eq!(compacted, 32 + 12 + USERS * (ROUNDS * 17 + 23));
    assert!(compacted < length / 2, "{length} to {compacted}");

    // Once is enough.
    let bytes = fs::read(&journal).unwrap();
    check(&TidalDb::open(folder.path()).unwrap(), &histories);
    assert!(fs::read(&journal).unwrap() == bytes);

    // It proves and repairs what sled lost.
    fs::remove_dir_all(folder.path().join("sled")).unwrap();
    check(&TidalDb::open(folder.path()).unwrap(), &histories);
}

#[test]
fn transitions_behind_the_compacted_ones_count() {
    let (folder, histories, _) = busy_store();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.rejoin_community_layer(0).unwrap();
        db.leave_community_layer(1).unwrap();
        db.leave_community_layer(USERS).unwrap();
    }
    fs::remove_dir_all(folder.path().join("sled")).unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(!signal(&db, 0, 1).gated);
    assert!(signal(&db, 1, 1).gated);
    assert!(signal(&db, USERS, 1).gated);
    for (user_id, more) in [(0, 1), (1, 1), (2, 0)] {
        let history = db.community_layer_history(user_id).unwrap();
        let before = &histories[usize::try_from(user_id).unwrap()];
        assert_eq!(history.len(), before.len() + more);
        assert!(history.starts_with(before));
    }
}

#[test]
fn a_damaged_block_is_written_anew_from_sled() {
    let (folder, histories, _) = busy_store();
    drop(TidalDb::open(folder.path()).unwrap());
    let journal = folder.path().join("journal");
    let whole = fs::read(&journal).unwrap();
    for at in [40, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        fs::write(&journal, &bytes).unwrap();
        check(&TidalDb::open(folder.path()).unwrap(), &histories);
        assert!(fs::read(&journal).unwrap() == whole, "byte {at}");
        assert!(fs::read(folder.path().join("journal.damaged")).unwrap() == bytes);
    }
}

/// Deletes the last transition of a user from the history in sled.
fn forget_last(store: &Path, user_id: u64) {
    let engine = SledEngine::open(&store.join("sled")).unwrap();
    let prefix = encode_key(EntityId(user_id), Tag::Transition, b"");
    let mut last = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        last = key.to_vec();
        Ok(())
    };
    engine
        .scan(Partition::History, &prefix, &mut visit)
        .unwrap();
    let mut batch = Batch::default();
    batch.delete(Partition::History, last);
    engine.apply(&batch).unwrap();
    engine.flush().unwrap();
}

#[test]
fn what_a_history_lost_is_found_by_verify_and_written_again() {
    let (folder, histories, _) = busy_store();
    forget_last(folder.path(), 3);
    forget_last(folder.path(), 4);
    let db = TidalDb::open(folder.path()).unwrap();
    assert_eq!(
        db.community_layer_history(3).unwrap().len() as u64,
        ROUNDS - 1
    );
    let found = db.verify().unwrap();
    assert_eq!((found.restored, found.is_clean()), (2, false));
    check(&db, &histories);
}

/// The journal had lost a leave, and so had the history, but not the record. Opening
/// wrote the older record over it, so that after the loss was accepted the gate was open
/// for a user who had left.
#[test]
fn a_record_of_a_lost_transition_is_neither_overwritten_nor_believed() {
    let folder = tempfile::tempdir().unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.leave_community_layer(1).unwrap();
        db.rejoin_community_layer(1).unwrap();
        db.leave_community_layer(1).unwrap();
        db.leave_community_layer(2).unwrap();
    }
    let journal = folder.path().join("journal");
    let mut bytes = fs::read(&journal).unwrap();
    // In the third block of 52 bytes.
    bytes[32 + 2 * 52 + 20] ^= 0xFF;
    fs::write(&journal, bytes).unwrap();
    forget_last(folder.path(), 1);

    let db = TidalDb::open(folder.path()).unwrap();
    assert!(signal(&db, 1, 1).gated && signal(&db, 3, 1).gated);
    assert_eq!(db.accept_loss().unwrap(), 1);
    drop(db);
    for _ in 0..2 {
        let db = TidalDb::open(folder.path()).unwrap();
        assert!(
            signal(&db, 1, 1).gated,
            "its last known transition is a rejoin"
        );
        assert!(signal(&db, 2, 1).gated);
        assert!(!signal(&db, 3, 1).gated);
        assert!(matches!(
            db.community_layer_status(1),
            Err(Error::MalformedRecord { user_id: 1, .. })
        ));
        assert_eq!(db.verify().unwrap().disagreeing, [1]);
    }
    let db = TidalDb::open(folder.path()).unwrap();
    db.rejoin_community_layer(1).unwrap();
    drop(db);
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(!signal(&db, 1, 1).gated);
    assert!(db.verify().unwrap().is_clean());
}
