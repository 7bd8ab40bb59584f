//! Table 3: a whole signal, of a user in two cohorts and three communities: the gate, the
//! base ledger and five more aggregates.
//!
//! 10,000 users, each in 2 of 8 cohorts and 3 of 12 communities, and 1,000 items; user and
//! item of each signal are drawn by a seeded generator. tidegate's own is
//! [`TidalDb::signal_with_context`], with the thread that writes behind at work. Its peers
//! have the scopes of each user at hand, and do the six additions of count and weight and
//! nothing else:
//!
//! | peer | how it adds |
//! |---|---|
//! | `DashMap` | `entry`, in memory alone |
//! | SQLite | upserts in transactions of 1,000 signals, a file in WAL mode, `synchronous = NORMAL` |
//! | sled | `update_and_fetch`, written behind every half second |
//! | Redis | `HINCRBY` over loopback of count and of weight, 1,000 signals in a pipeline |
//!
//! Where there are two threads, each adds signals of its own to the same aggregates.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

use std::hash::{BuildHasher, RandomState as DefaultHasher};
use std::sync::Mutex;

use anyhow::{Result, ensure};
use dashmap::DashMap;
use foldhash::fast::RandomState as FoldHash;
use rusqlite::Connection;
use serde_json::json;
use support::inputs::{Random, user};
use support::processes::{RedisServer, temporary_folder};
use support::report::{Report, Table};
use support::{Contender, interleave, on_threads, ratios, rounds, size};
use tidegate::{Profile, Signal, TidalDb};

const THREADS: usize = 2;
const ITEMS: u64 = 1_000;
const COHORTS: u64 = 8;
const COMMUNITIES: u64 = 12;
const ADDITIONS: u64 = 6;
const TRANSACTION: usize = 1_000;
const WEIGHT: u64 = 3;
const BASELINE: &str = "DashMap, foldhash, in memory alone";

/// A signal of a user, by number.
#[derive(Clone, Copy)]
struct Event {
    user: u64,
    item: u64,
}

impl Event {
    /// The scopes that it is added to, as the peers number them.
    fn scopes(self) -> [u64; 6] {
        let [cohort, other_cohort] = cohorts(self.user);
        let [one, two, three] = communities(self.user);
        let community = |number| 1 + COHORTS + number;
        [
            0,
            1 + cohort,
            1 + other_cohort,
            community(one),
            community(two),
            community(three),
        ]
    }
}

fn cohorts(user: u64) -> [u64; 2] {
    [user % (COHORTS / 2), COHORTS / 2 + user / 7 % (COHORTS / 2)]
}

fn communities(user: u64) -> [u64; 3] {
    [0, 1, 2].map(|nth| (user + nth * 5) % COMMUNITIES)
}

fn users() -> u64 {
    size(10_000, 200)
}

fn events(seed: u64, count: u64) -> Vec<Event> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| Event {
            user: random.below(users()),
            item: random.below(ITEMS),
        })
        .collect()
}

type Add = dyn Fn(&[Event]) + Sync;

/// Somebody who adds signals up.
struct Peer {
    name: &'static str,
    /// How many signals one thread adds in one measurement.
    signals: u64,
    add: Box<Add>,
    /// The sum of all counts, and of all weights.
    sums: Box<dyn Fn() -> (u64, u64) + Sync>,
}

fn main() -> Result<()> {
    let mut report = Report::new("whole_signal");
    let folder = temporary_folder()?;
    let mut peers = vec![
        tidegate(folder.path())?,
        dash_map::<FoldHash>(BASELINE),
        dash_map::<DefaultHasher>("DashMap, default hasher, in memory alone"),
        sqlite(&folder.path().join("sqlite"))?,
        sled(&folder.path().join("sled"))?,
    ];
    match redis()? {
        Some(redis) => peers.push(redis),
        None => report
            .notes
            .push("Redis was left out: `redis-server` is not installed.".to_owned()),
    }
    let mut table = Table::new(
        "A whole signal with six additions, ns a signal",
        peers.iter().map(|peer| peer.name.to_owned()),
    );

    let rounds = rounds();
    let mut contenders = Vec::new();
    for peer in &peers {
        let events: Vec<_> = (1..=THREADS as u64)
            .map(|seed| events(seed, peer.signals))
            .collect();
        for threads in [1, THREADS] {
            let events = events[..threads].to_vec();
            contenders.push(Contender::new(peer.name, move || {
                let (elapsed, _) = on_threads(threads, |thread| (peer.add)(&events[thread]));
                elapsed.as_nanos() as f64 / (threads as u64 * peer.signals) as f64
            }));
        }
    }
    let samples = interleave(&mut contenders, rounds);
    drop(contenders);
    for peer in &peers {
        // One round is for warming up; each has one thread, then two.
        let additions = (rounds as u64 + 1) * (1 + THREADS as u64) * peer.signals * ADDITIONS;
        ensure!(
            (peer.sums)() == (additions, additions * WEIGHT),
            "{} lost additions",
            peer.name
        );
    }

    let column = |nth: usize| {
        samples
            .iter()
            .skip(nth)
            .step_by(2)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (one, two) = (column(0), column(1));
    let speed_up = ratios(&one, &two);
    table.column("1 thread", Some(BASELINE), one);
    table.column(format!("{THREADS} threads"), Some(BASELINE), two);
    table.column("speed-up", None, speed_up);
    report.tables.push(table);
    report.publish()
}

fn tidegate(folder: &std::path::Path) -> Result<Peer> {
    let db: &'static TidalDb = Box::leak(Box::new(TidalDb::open(folder.join("tidegate"))?));
    for cohort in 0..COHORTS {
        let attribute = if cohort < COHORTS / 2 {
            "first"
        } else {
            "second"
        };
        db.define_cohort(
            &format!("cohort-{cohort}"),
            &format!("{attribute} == {cohort}"),
        )?;
    }
    for number in 0..users() {
        let [first, second] = cohorts(number);
        let mut profile = Profile::new();
        profile.insert("first".to_owned(), json!(first));
        profile.insert("second".to_owned(), json!(second));
        db.set_profile(user(number), &profile)?;
        for community in communities(number) {
            db.join_community(user(number), &format!("community-{community}"))?;
        }
    }
    db.flush()?;
    Ok(Peer {
        name: "tidegate, gate and write-behind included",
        signals: size(200_000, 1_000),
        add: Box::new(move |events| {
            let (mut cohorts, mut communities) = (0, 0);
            for event in events {
                let signal = Signal {
                    item_id: event.item,
                    kind: "rating",
                    weight: WEIGHT as f64,
                };
                let receipt = db.signal_with_context(user(event.user), &signal).unwrap();
                cohorts += u64::from(receipt.cohorts);
                communities += u64::from(receipt.communities);
            }
            let signals = events.len() as u64;
            assert_eq!((cohorts, communities), (2 * signals, 3 * signals));
        }),
        sums: Box::new(move || {
            let scopes = std::iter::once(tidegate::Scope::Base)
                .chain((0..COHORTS).map(|n| tidegate::Scope::Cohort(format!("cohort-{n}"))))
                .chain(
                    (0..COMMUNITIES).map(|n| tidegate::Scope::Community(format!("community-{n}"))),
                );
            let mut sums = (0, 0);
            for scope in scopes {
                for ranked in db.top(&scope, None, usize::MAX).unwrap() {
                    sums.0 += ranked.count;
                    sums.1 += whole(ranked.weight);
                }
            }
            sums
        }),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of whole weights"
)]
fn whole(weight: f64) -> u64 {
    weight.round() as u64
}

fn dash_map<S>(name: &'static str) -> Peer
where
    S: BuildHasher + Clone + Default + Sync + 'static,
{
    let map: &'static DashMap<(u64, u64), (u64, u64), S> = Box::leak(Box::default());
    Peer {
        name,
        signals: size(200_000, 1_000),
        add: Box::new(move |events| {
            for event in events {
                for scope in event.scopes() {
                    let mut sums = map.entry((scope, event.item)).or_default();
                    sums.0 += 1;
                    sums.1 += WEIGHT;
                }
            }
        }),
        sums: Box::new(move || {
            map.iter()
                .fold((0, 0), |sums, entry| (sums.0 + entry.0, sums.1 + entry.1))
        }),
    }
}

fn sqlite(file: &std::path::Path) -> Result<Peer> {
    let connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         CREATE TABLE aggregates (
            scope INTEGER NOT NULL,
            item INTEGER NOT NULL,
            count INTEGER NOT NULL,
            weight INTEGER NOT NULL,
            PRIMARY KEY (scope, item)
         ) WITHOUT ROWID;",
    )?;
    // SQLite has one writer at a time whatever the number of connections.
    let connection: &'static Mutex<Connection> = Box::leak(Box::new(Mutex::new(connection)));
    let add = |events: &[Event]| -> rusqlite::Result<()> {
        let mut connection = connection.lock().unwrap();
        let transaction = connection.transaction()?;
        let mut upsert = transaction.prepare(
            "INSERT INTO aggregates VALUES (?1, ?2, 1, ?3)
             ON CONFLICT DO UPDATE SET count = count + 1, weight = weight + excluded.weight",
        )?;
        for event in events {
            for scope in event.scopes() {
                upsert.execute((
                    scope.cast_signed(),
                    event.item.cast_signed(),
                    WEIGHT.cast_signed(),
                ))?;
            }
        }
        drop(upsert);
        transaction.commit()
    };
    Ok(Peer {
        name: "SQLite",
        signals: size(20_000, 1_000),
        add: Box::new(move |events| {
            for events in events.chunks(TRANSACTION) {
                add(events).unwrap();
            }
        }),
        sums: Box::new(|| {
            let sums: (i64, i64) = connection
                .lock()
                .unwrap()
                .query_row(
                    "SELECT sum(count), sum(weight) FROM aggregates",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            (sums.0.cast_unsigned(), sums.1.cast_unsigned())
        }),
    })
}

fn sled(folder: &std::path::Path) -> Result<Peer> {
    let db = sled::Config::new()
        .path(folder)
        .flush_every_ms(Some(500))
        .open()?;
    let decode = |value: &[u8]| {
        let (count, weight) = value.split_at(8);
        (
            u64::from_le_bytes(count.try_into().unwrap()),
            u64::from_le_bytes(weight.try_into().unwrap()),
        )
    };
    let adding = db.clone();
    Ok(Peer {
        name: "sled",
        signals: size(10_000, 1_000),
        add: Box::new(move |events| {
            for event in events {
                for scope in event.scopes() {
                    let mut key = [0; 16];
                    key[..8].copy_from_slice(&scope.to_be_bytes());
                    key[8..].copy_from_slice(&event.item.to_be_bytes());
                    adding
                        .update_and_fetch(key, |value| {
                            let (count, weight) = value.map_or((0, 0), decode);
                            let mut value = [0; 16];
                            value[..8].copy_from_slice(&(count + 1).to_le_bytes());
                            value[8..].copy_from_slice(&(weight + WEIGHT).to_le_bytes());
                            Some(value.to_vec())
                        })
                        .unwrap();
                }
            }
        }),
        sums: Box::new(move || {
            db.iter().values().fold((0, 0), |sums, value| {
                let (count, weight) = decode(&value.unwrap());
                (sums.0 + count, sums.1 + weight)
            })
        }),
    })
}

fn redis() -> Result<Option<Peer>> {
    const COUNT: &str = "count";
    const WEIGHTS: &str = "weight";
    let Some(server) = RedisServer::start()? else {
        return Ok(None);
    };
    let client = redis::Client::open(server.url())?;
    let summing = client.clone();
    Ok(Some(Peer {
        name: "Redis",
        signals: size(10_000, 1_000),
        add: Box::new(move |events| {
            // Moved in so that the server lives as long.
            let _server = &server;
            let mut connection = client.get_connection().unwrap();
            for events in events.chunks(TRANSACTION) {
                let mut pipeline = redis::pipe();
                for event in events {
                    for scope in event.scopes() {
                        let key = format!("{scope}:{}", event.item);
                        for (field, by) in [(COUNT, 1), (WEIGHTS, WEIGHT)] {
                            let increment = pipeline.cmd("HINCRBY");
                            increment.arg(&key).arg(field).arg(by).ignore();
                        }
                    }
                }
                pipeline.query::<()>(&mut connection).unwrap();
            }
        }),
        sums: Box::new(move || {
            let mut connection = summing.get_connection().unwrap();
            let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
            keys.iter().fold((0, 0), |sums, key| {
                let (count, weight): (u64, u64) = redis::cmd("HMGET")
                    .arg(key)
                    .arg(COUNT)
                    .arg(WEIGHTS)
                    .query(&mut connection)
                    .unwrap();
                (sums.0 + count, sums.1 + weight)
            })
        }),
    }))
}
