//! Table 6: opening a store in which many users have left, and the time from the start of
//! the program to its first answer.
//!
//! Opening is [`TidalDb::open`], beside a bare sled that opens a copy of the same files and
//! scans the same records; both in this process, with the files in the system's cache. The
//! first opening after leaves also compacts the journal; it is measured apart, once, when
//! the store is filled, and every other one here comes after it.
//!
//! The other keys are profiles of users who never left, in the users partition. The
//! component's share is what it takes to restore as many records in the batches that the
//! host makes of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use support::inputs::user;
use support::processes::{temporary_folder, tidegate};
use support::report::{Curve, Report, Table, number};
use support::rules::{Instance, RESTORE_BATCH, engine, load};
use support::stores::{Stores, copy};
use support::{Contender, interleave, median, ratios, rounds, size};
use tidegate::TidalDb;
use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Batch, Partition, StorageEngine as _};

const TIDEGATE: &str = "tidegate";
const BARE: &str = "bare sled, opened and scanned";
const BARE_OPENED: &str = "bare sled, opened";
const COMPONENT: &str = "the component's share";
const OTHER_KEYS: u64 = 10_000_000;
const LARGEST_CURVE: u64 = 10_000_000;

fn main() -> Result<()> {
    let stores = Stores::new()?;
    let folder = temporary_folder()?;
    let mut report = Report::new("start_up");
    let sizes = support::growth_sizes(LARGEST_CURVE);
    let tables = [size(1_000_000, 10_000), size(10_000_000, 10_000)];
    for left in sizes {
        let bare = folder.path().join(format!("bare-{left}"));
        copy(&stores.with_left(left)?.join("sled"), &bare)?;
        let mut contenders = vec![opened(TIDEGATE, stores.with_left(left)?, left)];
        contenders.extend(bare_sled(&bare, left));
        contenders.push(component(left)?);
        let is_table = tables.contains(&left);
        let samples = interleave(&mut contenders, if is_table { 5 } else { 3 });
        let names = contenders.iter().map(|contender| contender.name.clone());
        for (name, samples) in names.zip(&samples) {
            report.curves.push(Curve {
                chart: "Start-up".to_owned(),
                line: name,
                unit: "ms".to_owned(),
                points: vec![(left, median(samples) * 1e3)],
            });
        }
        if is_table {
            let title = format!("Opening with {} records, in seconds", number(left as f64));
            let mut table = Table::new(title, contenders.iter().map(|one| one.name.clone()));
            table.column("seconds", Some(BARE), samples.clone());
            let each = samples.iter().map(|samples| {
                let each = samples.iter().map(|seconds| seconds * 1e9 / left as f64);
                each.collect()
            });
            table.column("ns a record", None, each.collect());
            report.tables.push(table);
            report.notes.push(format!(
                "The first opening after {} leaves, which compacts the journal, took {} s.",
                number(left as f64),
                number(stores.first_opening(left)?)
            ));
        }
        std::fs::remove_dir_all(&bare)?;
    }
    report.curves = Curve::merged(std::mem::take(&mut report.curves));
    report.tables.push(other_keys(&stores, folder.path())?);
    report.tables.push(first_answer(folder.path())?);
    report.publish()
}

fn opened(name: &str, path: PathBuf, left: u64) -> Contender<'static> {
    Contender::new(name, move || {
        let started = Instant::now();
        let db = TidalDb::open(&path).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(db.stats().left_users, left);
        seconds
    })
}

/// Opened, and opened and scanned.
fn bare_sled(folder: &Path, left: u64) -> [Contender<'static>; 2] {
    let open = |folder: &Path| {
        // sled gives its lock back on a thread of its own, some time after it is closed.
        for _ in 0..10_000 {
            let started = Instant::now();
            match sled::Config::new().path(folder).flush_every_ms(None).open() {
                Ok(db) => return (started, db),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        panic!("the bare sled does not open");
    };
    let (opened, scanned) = (folder.to_owned(), folder.to_owned());
    [
        Contender::new(BARE_OPENED, move || {
            let (started, db) = open(&opened);
            let seconds = started.elapsed().as_secs_f64();
            drop(db);
            seconds
        }),
        Contender::new(BARE, move || {
            let (started, db) = open(&scanned);
            let tree = db.open_tree(Partition::Memberships.name()).unwrap();
            let mut records = 0;
            let mut bytes = 0;
            for record in &tree {
                let (_, record) = record.unwrap();
                records += 1;
                bytes += record.len() as u64;
            }
            let seconds = started.elapsed().as_secs_f64();
            assert_eq!((records, bytes), (left, left * 9));
            seconds
        }),
    ]
}

/// The component restores as many records.
fn component(left: u64) -> Result<Contender<'static>> {
    let mut instance = engine(None)
        .and_then(|engine| Instance::new(&engine, &load(&engine)?))
        .map_err(anyhow::Error::msg)?;
    let users: Vec<u64> = (0..RESTORE_BATCH).map(user).collect();
    let lengths = vec![9; users.len()];
    let record = [1, 1, 0, 0, 0, 0, 0, 0, 0];
    let bytes = record.repeat(users.len());
    Ok(Contender::new(COMPONENT, move || {
        let mut restored = 0;
        let started = Instant::now();
        while restored < left {
            let part = usize::try_from(RESTORE_BATCH.min(left - restored)).unwrap();
            let memberships = instance
                .call(|exports, store| {
                    exports.call_restore(
                        store,
                        &users[..part],
                        &lengths[..part],
                        &bytes[..part * 9],
                    )
                })
                .unwrap();
            restored += memberships.iter().flatten().count() as u64;
        }
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(restored, left);
        seconds
    }))
}

fn other_keys(stores: &Stores, folder: &Path) -> Result<Table> {
    let left = size(1_000_000, 10_000);
    let others = size(OTHER_KEYS, 10_000);
    let path = stores.with_left(left)?;
    let crowded = folder.join("crowded");
    copy(&path, &crowded)?;
    let engine = SledEngine::open(&crowded.join("sled"))?;
    // In the order of their keys, which sled takes in fastest.
    let mut users: Vec<u64> = (left..left + others).map(user).collect();
    users.sort_unstable();
    let mut batch = Batch::default();
    for user_id in users {
        let key = encode_key(EntityId(user_id), Tag::Profile, b"");
        batch.put(Partition::Users, key, br#"{"age":24}"#.to_vec());
        if batch.writes().len() == 10_000 {
            engine.apply(&std::mem::take(&mut batch))?;
        }
    }
    engine.apply(&batch)?;
    engine.flush()?;
    drop(engine);
    let mut contenders = Vec::new();
    for (path, bare) in [(path, "bare"), (crowded, "bare-crowded")] {
        let bare = folder.join(bare);
        copy(&path.join("sled"), &bare)?;
        contenders.push(opened(TIDEGATE, path, left));
        contenders.extend(bare_sled(&bare, left));
    }
    let samples = interleave(&mut contenders, 5);
    let (alone, crowded) = samples.split_at(contenders.len() / 2);
    let title = format!(
        "Opening with {} records and other keys in the users partition, in seconds",
        number(left as f64)
    );
    let names = contenders.iter().take(alone.len());
    let mut table = Table::new(title, names.map(|one| one.name.clone()));
    table.column("users who left alone", None, alone.to_vec());
    let others = number(others as f64);
    table.column(format!("with {others} other keys"), None, crowded.to_vec());
    table.column("ratio", None, ratios(crowded, alone));
    Ok(table)
}

/// The program from its start to its end.
fn first_answer(folder: &Path) -> Result<Table> {
    let program = tidegate()?;
    let store = folder.join("small");
    let run = |arguments: &[&str]| -> (f64, String) {
        let started = Instant::now();
        let output = Command::new(&program)
            .arg("--store")
            .arg(&store)
            .args(arguments)
            .output()
            .unwrap();
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success());
        (milliseconds, String::from_utf8(output.stdout).unwrap())
    };
    run(&["leave", "1"]);
    ensure!(run(&["--json", "status", "1"]).1.contains("left"));
    let mut contenders = [
        Contender::new("`tidegate status 1`", || {
            let (milliseconds, answer) = run(&["--json", "status", "1"]);
            assert!(answer.contains("left"), "{answer}");
            milliseconds
        }),
        Contender::new("`tidegate --version`, which opens nothing", || {
            run(&["--version"]).0
        }),
    ];
    let samples = interleave(&mut contenders, rounds() * 3);
    let mut table = Table::new(
        "From the start of the program to its end, a store with one user, the component compiled before",
        contenders.iter().map(|one| one.name.clone()),
    );
    table.column("ms", None, samples);
    Ok(table)
}
