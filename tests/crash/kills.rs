//! The workload killed again and again.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tidegate::TidalDb;

use super::account::Account;
use super::number_of_kills;
use super::workload::{self, Said};
use crate::support::random::Random;

/// After so many kills a new store is made, so that histories stay short.
const KILLS_PER_STORE: usize = 40;

#[test]
fn what_was_acknowledged_survives_kills() {
    let kills = number_of_kills(50);
    let seed = match std::env::var("TIDEGATE_SEED") {
        Ok(seed) => seed.parse().expect("TIDEGATE_SEED is a number"),
        Err(_) => std::process::id().into(),
    };
    println!("TIDEGATE_SEED={seed}");
    let mut random = Random::new(seed);
    let mut heard = 0;
    for first in (0..kills).step_by(KILLS_PER_STORE) {
        let folder = tempfile::tempdir().unwrap();
        let mut round = Round::new(folder.path());
        for kill in first..kills.min(first + KILLS_PER_STORE) {
            println!("kill {kill}");
            heard += round.kill(&mut random);
        }
    }
    println!("{heard} lines were heard before {kills} kills");
    assert!(
        heard > kills,
        "the kills came too early to interrupt anything"
    );
}

/// A store and what is known of it.
struct Round<'a> {
    folder: &'a Path,
    accounts: Vec<Account>,
}

impl<'a> Round<'a> {
    fn new(folder: &'a Path) -> Self {
        workload::prepare(&TidalDb::open(folder.join("store")).unwrap());
        Round {
            folder,
            accounts: workload::users().map(Account::new).collect(),
        }
    }

    /// Starts the workload, kills it at a random moment, and compares. Returns how
    /// many lines it had said.
    fn kill(&mut self, random: &mut Random) -> usize {
        let (store, said) = (self.folder.join("store"), self.folder.join("said"));
        let _ = fs::remove_file(&said);
        self.make_opening_harder(&store, random);
        let mut process = workload::start(&store, &said, random.next());
        if random.below(3) > 0 {
            wait_until_opened(&said);
        }
        sleep(Duration::from_micros(random.next() % 60_000));
        process.kill().unwrap();
        process.wait().unwrap();

        let text = fs::read_to_string(&said).unwrap_or_default();
        for line in text.lines() {
            let said: Said = line.parse().unwrap();
            let user_id = match said {
                Said::Opened => continue,
                Said::Begins { user_id, .. }
                | Said::Done { user_id, .. }
                | Said::Signals { user_id, .. }
                | Said::Flushed { user_id } => user_id,
            };
            self.accounts[usize::try_from(user_id).unwrap()].hear(said);
        }
        let db = TidalDb::open(&store).unwrap();
        // If sled was taken away, the process may not have come so far.
        workload::prepare(&db);
        for account in &mut self.accounts {
            account.check(&db);
        }
        let found = db.verify().unwrap();
        assert!(found.is_clean(), "{found:?}");
        text.lines().count()
    }

    /// Now and then takes sled or the journal away, so that the kill may come while
    /// one is written again from the other.
    fn make_opening_harder(&mut self, store: &Path, random: &mut Random) {
        match random.below(10) {
            0 => fs::remove_file(store.join("journal")).unwrap(),
            1 => {
                fs::remove_dir_all(store.join("sled")).unwrap();
                for account in &mut self.accounts {
                    account.forget_signals();
                }
            }
            _ => {}
        }
    }
}

fn wait_until_opened(said: &Path) {
    for _ in 0..20_000 {
        if fs::metadata(said).is_ok_and(|found| found.len() > 0) {
            return;
        }
        sleep(Duration::from_micros(500));
    }
    panic!("the process did not open the store");
}
