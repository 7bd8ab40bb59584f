//! The journal and sled of different moments or different stores, or both damaged.

use std::fs;
use std::path::Path;

use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Partition, StorageEngine as _};
use tidegate::{MembershipStatus, TidalDb};

use super::store::{Harm, Opening, Store};
use crate::support::copy_folder;
use crate::support::random::Random;

/// A store, and a copy of its folder from the middle of its life.
fn with_older_copy() -> (Store, tempfile::TempDir) {
    let older = tempfile::tempdir().unwrap();
    let store = Store::new(|folder| copy_folder(folder, older.path()));
    (store, older)
}

fn replace_sled(folder: &Path, by: &Path) {
    fs::remove_dir_all(folder.join("sled")).unwrap();
    copy_folder(&by.join("sled"), &folder.join("sled"));
}

fn cut_to_half(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(length / 2).unwrap();
}

#[test]
fn an_older_sled_catches_up_from_the_journal() {
    let (store, older) = with_older_copy();
    let copy = store.copy();
    replace_sled(copy.path(), older.path());
    let opening = store.check(copy.path(), Harm::OneWitness, "older sled");
    assert_eq!(opening, Opening::Works);
}

#[test]
fn an_older_journal_is_completed_from_sled() {
    let (store, older) = with_older_copy();
    let copy = store.copy();
    fs::copy(older.path().join("journal"), copy.path().join("journal")).unwrap();
    let opening = store.check(copy.path(), Harm::OneWitness, "older journal");
    assert_eq!(opening, Opening::Works);
}

#[test]
fn a_journal_of_another_store_is_refused() {
    let (store, other) = (Store::new(|_| ()), Store::new(|_| ()));
    let copy = store.copy();
    fs::copy(other.path().join("journal"), copy.path().join("journal")).unwrap();
    let opening = store.check(copy.path(), Harm::OneWitness, "journal of another store");
    assert_eq!(opening, Opening::Fails);
}

type Damage = fn(&Path, &mut Random);

/// What can be done to the journal or to sled's data file.
const DAMAGES: [(&str, Damage); 5] = [
    ("whole", |_, _| ()),
    ("cut to half", |file, _| cut_to_half(file)),
    ("cut to nothing", |file, _| fs::write(file, b"").unwrap()),
    ("deleted", |file, _| fs::remove_file(file).unwrap()),
    ("hit at eight places", |file, random| {
        let mut bytes = fs::read(file).unwrap();
        for _ in 0..8 {
            let at = random.below(bytes.len());
            bytes[at] ^= 0xFF;
        }
        fs::write(file, bytes).unwrap();
    }),
];

#[test]
fn what_both_lost_shuts_gates() {
    let (store, older) = with_older_copy();
    let mut random = Random::new(3);
    for (of_journal, damage_journal) in DAMAGES {
        for (of_sled, damage_sled) in DAMAGES {
            for sled_is_older in [false, true] {
                let copy = store.copy();
                if sled_is_older {
                    replace_sled(copy.path(), older.path());
                }
                damage_journal(&copy.path().join("journal"), &mut random);
                damage_sled(&copy.path().join("sled/db"), &mut random);
                let age = if sled_is_older { "older " } else { "" };
                let what = format!("journal {of_journal}, {age}sled {of_sled}");
                store.check(copy.path(), Harm::BothWitnesses, &what);
            }
        }
    }
}

/// Its end may be what is left of the transitions that are nowhere else.
#[test]
fn a_journal_with_a_damaged_end_is_kept_where_transitions_are_missing() {
    let (store, older) = with_older_copy();
    let copy = store.copy();
    replace_sled(copy.path(), older.path());
    let mut damaged = fs::read(copy.path().join("journal")).unwrap();
    *damaged.last_mut().unwrap() ^= 0xFF;
    fs::write(copy.path().join("journal"), &damaged).unwrap();
    store.check(copy.path(), Harm::BothWitnesses, "damaged end, older sled");
    let kept = fs::read(copy.path().join("journal.damaged")).unwrap();
    assert_eq!(kept, damaged);
}

fn has_left(db: &TidalDb, user_id: u64) -> bool {
    db.community_layer_status(user_id).unwrap().status == MembershipStatus::Left
}

/// An empty journal was taken for a whole one, so the first block was written where the
/// header should be, and was not found again.
#[test]
fn a_journal_that_was_emptied_before_the_first_leave_gets_a_header() {
    let folder = tempfile::tempdir().unwrap();
    drop(TidalDb::open(folder.path()).unwrap());
    fs::write(folder.path().join("journal"), b"").unwrap();
    TidalDb::open(folder.path())
        .unwrap()
        .leave_community_layer(1)
        .unwrap();
    fs::remove_dir_all(folder.path().join("sled")).unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(has_left(&db, 1));
    assert!(db.verify().unwrap().is_clean());
}

/// Records that sled had lost were written again from the journal, and with them an
/// older record over one that only sled had.
#[test]
fn what_only_sled_has_is_kept_while_the_rest_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    {
        let db = TidalDb::open(folder.path()).unwrap();
        db.leave_community_layer(1).unwrap();
        db.rejoin_community_layer(1).unwrap();
        db.leave_community_layer(2).unwrap();
        db.leave_community_layer(1).unwrap();
    }
    {
        let engine = SledEngine::open(&folder.path().join("sled")).unwrap();
        let key = encode_key(EntityId(2), Tag::CommunityLeave, b"");
        engine.put(Partition::Memberships, &key, &[0; 9]).unwrap();
        engine.flush().unwrap();
    }
    let journal = folder.path().join("journal");
    let length = fs::metadata(&journal).unwrap().len();
    let file = fs::File::options().write(true).open(&journal).unwrap();
    file.set_len(length - 1).unwrap();

    let db = TidalDb::open(folder.path()).unwrap();
    assert!(has_left(&db, 1) && has_left(&db, 2));
    assert!(db.verify().unwrap().is_clean());
    drop(db);
    // Sled alone has it now.
    fs::remove_file(&journal).unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    assert!(has_left(&db, 1) && has_left(&db, 2));
}
