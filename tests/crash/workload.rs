//! The process that is killed: leaves, rejoins, signals and flushes on several
//! threads, and what it says of them, a line each, in a file that outlives it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use tidegate::{Config, MembershipStatus, Profile, TidalDb};

use crate::support::random::Random;
use crate::support::signal;

const STORE: &str = "TIDEGATE_CRASH_STORE";
const SAID: &str = "TIDEGATE_CRASH_SAID";
const SEED: &str = "TIDEGATE_CRASH_SEED";

const THREADS: u64 = 4;
const USERS_PER_THREAD: u64 = 3;

/// Every user of the workload; each one's signals are about the item of its own
/// number.
pub(super) fn users() -> impl Iterator<Item = u64> {
    0..THREADS * USERS_PER_THREAD
}

/// What the process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The store is open.
    Opened,
    /// A leave or a rejoin of a user begins.
    Begins { user_id: u64, to: MembershipStatus },
    /// It has returned without an error.
    Done { user_id: u64, to: MembershipStatus },
    /// So many signals of a user follow, gated or not.
    Signals {
        user_id: u64,
        count: u64,
        gated: bool,
    },
    /// All signals of this user that were announced are flushed.
    Flushed { user_id: u64 },
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Opened => f.write_str("opened"),
            Said::Begins { user_id, to } => write!(f, "begins {user_id} {to}"),
            Said::Done { user_id, to } => write!(f, "done {user_id} {to}"),
            Said::Signals {
                user_id,
                count,
                gated,
            } => write!(f, "signals {user_id} {count} {gated}"),
            Said::Flushed { user_id } => write!(f, "flushed {user_id}"),
        }
    }
}

impl FromStr for Said {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().map_err(|_| ());
        let standing = |word: &str| {
            [MembershipStatus::Active, MembershipStatus::Left]
                .into_iter()
                .find(|status| status.name() == word)
                .ok_or(())
        };
        match words[..] {
            ["opened"] => Ok(Said::Opened),
            ["begins", user_id, to] => Ok(Said::Begins {
                user_id: number(user_id)?,
                to: standing(to)?,
            }),
            ["done", user_id, to] => Ok(Said::Done {
                user_id: number(user_id)?,
                to: standing(to)?,
            }),
            ["signals", user_id, count, gated] => Ok(Said::Signals {
                user_id: number(user_id)?,
                count: number(count)?,
                gated: gated.parse().map_err(|_| ())?,
            }),
            ["flushed", user_id] => Ok(Said::Flushed {
                user_id: number(user_id)?,
            }),
            _ => Err(()),
        }
    }
}

/// Starts the process: this very test program, told to run [`entry`] alone.
pub(super) fn start(store: &Path, said: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::workload::entry",
            "--ignored",
            "--nocapture",
        ])
        .env(STORE, store)
        .env(SAID, said)
        .env(SEED, seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Prepares a store for the workload, if it is not: a cohort and two communities with
/// every user.
pub(super) fn prepare(db: &TidalDb) {
    db.define_cohort("all", "true").unwrap();
    for user_id in users() {
        db.set_profile(user_id, &Profile::new()).unwrap();
        db.join_community(user_id, "film").unwrap();
        db.join_community(user_id, "books").unwrap();
    }
    db.flush().unwrap();
}

#[test]
#[ignore = "the process that the tests of crashes start and kill; does nothing by itself"]
fn entry() {
    let (Some(store), Some(said), Ok(seed)) = (
        std::env::var_os(STORE),
        std::env::var_os(SAID),
        std::env::var(SEED),
    ) else {
        return;
    };
    let said = OpenOptions::new()
        .create(true)
        .append(true)
        .open(said)
        .unwrap();
    let seed: u64 = seed.parse().unwrap();
    // Often enough that kills hit the flush of this thread too.
    let config = Config::new(store).flush_every(Duration::from_millis(3));
    let db = TidalDb::from_config(config).unwrap();
    say(&said, Said::Opened);
    prepare(&db);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, said) = (&db, &said);
            scope.spawn(move || work(db, said, thread, seed));
        }
    });
}

/// Works on users of which no other thread knows, until the process is killed.
fn work(db: &TidalDb, said: &File, thread: u64, seed: u64) {
    let mut random = Random::new(seed ^ (thread << 32));
    // Bounded, should nobody kill it.
    for _ in 0..20_000 {
        let user_id = thread * USERS_PER_THREAD + random.next() % USERS_PER_THREAD;
        let has_left = db.community_layer_status(user_id).unwrap().status == MembershipStatus::Left;
        match random.below(8) {
            0..4 => {
                let count = 1 + random.next() % 8;
                say(
                    said,
                    Said::Signals {
                        user_id,
                        count,
                        gated: has_left,
                    },
                );
                for _ in 0..count {
                    assert_eq!(signal(db, user_id, user_id).gated, has_left);
                }
            }
            4..7 => {
                let to = if has_left {
                    MembershipStatus::Active
                } else {
                    MembershipStatus::Left
                };
                say(said, Said::Begins { user_id, to });
                match to {
                    MembershipStatus::Left => db.leave_community_layer(user_id).unwrap(),
                    MembershipStatus::Active => db.rejoin_community_layer(user_id).unwrap(),
                }
                say(said, Said::Done { user_id, to });
            }
            _ => {
                db.flush().unwrap();
                for number in 0..USERS_PER_THREAD {
                    let user_id = thread * USERS_PER_THREAD + number;
                    say(said, Said::Flushed { user_id });
                }
            }
        }
    }
}

/// One write: what was said before a kill is said whole.
fn say(mut file: &File, said: Said) {
    file.write_all(format!("{said}\n").as_bytes()).unwrap();
}
