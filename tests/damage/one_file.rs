//! Each file of a store cut, deleted, or hit at random places.

use std::fs;
use std::path::{Path, PathBuf};

use super::store::{Harm, Opening, Store};
use crate::support::paths;
use crate::support::random::Random;

/// How many random places of a file are hit, each in a store of its own.
const PLACES: usize = 100;

/// Damages one file of a copy of the store, and checks it.
fn check(store: &Store, file: &Path, how: &str, damage: impl FnOnce(&Path)) -> Opening {
    let copy = store.copy();
    damage(&copy.path().join(file));
    let what = format!("`{}` {how}", file.display());
    store.check(copy.path(), Harm::OneWitness, &what)
}

fn cut(store: &Store, how: &str, length: impl Fn(u64) -> u64) {
    for file in paths(store.path()) {
        check(store, &file, how, |path| {
            let whole = fs::metadata(path).unwrap().len();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(length(whole)).unwrap();
        });
    }
}

#[test]
fn any_file_may_be_cut_to_nothing() {
    cut(&Store::new(|_| ()), "cut to nothing", |_| 0);
}

#[test]
fn any_file_may_be_cut_to_half() {
    cut(&Store::new(|_| ()), "cut to half", |length| length / 2);
}

#[test]
fn any_file_may_lack_its_last_byte() {
    cut(&Store::new(|_| ()), "without its last byte", |length| {
        length.saturating_sub(1)
    });
}

#[test]
fn any_file_may_be_deleted() {
    let store = Store::new(|_| ());
    for file in paths(store.path()) {
        check(&store, &file, "deleted", |path| {
            fs::remove_file(path).unwrap();
        });
    }
}

#[test]
fn any_file_may_hold_something_else() {
    let store = Store::new(|_| ());
    for file in paths(store.path()) {
        check(&store, &file, "overwritten with text", |path| {
            let length = fs::metadata(path).unwrap().len();
            let text =
                "not what was here before\n".repeat(1 + usize::try_from(length).unwrap() / 25);
            fs::write(path, text).unwrap();
        });
    }
}

/// Flips eight bytes at random places of a file, which lie beside each other; returns
/// how many openings failed.
fn flip(file: &str, seed: u64) -> usize {
    let store = Store::new(|_| ());
    let mut random = Random::new(seed);
    (0..PLACES)
        .filter(|place| {
            let how = format!("hit at place {place} of seed {seed}");
            let opening = check(&store, &PathBuf::from(file), &how, |path| {
                let mut bytes = fs::read(path).unwrap();
                let at = random.below(used(&bytes) - 8);
                for byte in &mut bytes[at..at + 8] {
                    *byte ^= 0xFF;
                }
                fs::write(path, bytes).unwrap();
            });
            opening == Opening::Fails
        })
        .count()
}

/// How far a file is used: sled makes its file longer than what it holds.
fn used(bytes: &[u8]) -> usize {
    bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count()
}

#[test]
fn any_place_of_the_journal_may_be_damaged() {
    assert_eq!(flip("journal", 1), 0, "sled has all that is needed");
}

#[test]
fn any_place_of_sled_may_be_damaged() {
    flip("sled/db", 2);
}
