//! Table 5: leaves that are on the disk when the call returns, by one caller and by many at
//! once, and how long the slowest hundredth of them takes.
//!
//! Every leave is the first of its user. tidegate has it in its journal when the call
//! returns and puts it into storage later; the table says how many leaves a second that
//! makes too. The peers put one record of the same size on the
//! disk for each:
//!
//! - a bare write: 4 KiB at the next place of a file that already has its length, then
//!   fdatasync, by one caller; what the disk itself takes
//! - the same at the end of a file that grows, as a journal does: the file system writes
//!   the file's new length too
//! - sled, insert and flush: on Linux that flush ends in `sync_file_range`, which leaves
//!   out the disk's cache, so a power cut may take what was flushed
//! - sled, insert, flush and fdatasync of its file: as durable as a leave; with many
//!   callers one thread flushes for all of them

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use support::inputs::{mix, user};
use support::processes::temporary_folder;
use support::report::{Curve, Report, Table};
use support::stores::Stores;
use support::{
    Contender, growth_sizes, interleave, median, on_threads, percentile, quick, ratios, rounds,
    size,
};
use tidegate::TidalDb;

const CALLERS: [usize; 3] = [1, 8, 64];
const TIDEGATE: &str = "tidegate, leave";
const STORED: &str = "tidegate, leave, until storage has it too";
const BARE: &str = "a bare 4 KiB write and fdatasync";
const GROWING: &str = "the same at the end of a file that grows";
const SHARED: &str = "sled, insert, flush and fdatasync, one flusher for all";
const BLOCK: usize = 4096;
const BLOCKS: u64 = 16_384;

/// Somebody who puts the record of a user, by number, on the disk.
struct Peer<'a> {
    name: &'static str,
    callers: &'static [usize],
    leave: Box<dyn Fn(u64) + Sync + 'a>,
    /// Ends what a leave leaves to do after it has returned, which is the peer's own time
    /// and not that of whoever is measured next.
    settle: Box<dyn Fn() + Sync + 'a>,
    /// The next user's number, and so how many there were.
    next: AtomicU64,
}

impl<'a> Peer<'a> {
    fn new(name: &'static str, callers: &'static [usize], leave: impl Fn(u64) + Sync + 'a) -> Self {
        Peer {
            name,
            callers,
            leave: Box::new(leave),
            settle: Box::new(|| ()),
            next: AtomicU64::new(0),
        }
    }

    fn settled_by(mut self, settle: impl Fn() + Sync + 'a) -> Self {
        self.settle = Box::new(settle);
        self
    }

    /// Lets so many callers make leaves, and returns what one measurement found.
    fn measure(&self, callers: usize) -> Sample {
        let leaves = match callers {
            1 => size(2_000, 20),
            8 => size(8_000, 80),
            _ => size(50_000, 640),
        };
        let each = leaves / callers as u64;
        let (elapsed, latencies) = on_threads(callers, |_| {
            let mut latencies = Vec::new();
            for _ in 0..each {
                // Relaxed: it counts and guards nothing.
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let started = Instant::now();
                (self.leave)(number);
                latencies.push(started.elapsed().as_nanos() as f64 / 1_000.0);
            }
            latencies
        });
        let settling = Instant::now();
        (self.settle)();
        let settled = elapsed + settling.elapsed();
        let leaves = (each * callers as u64) as f64;
        Sample {
            per_second: leaves / elapsed.as_secs_f64(),
            settled_per_second: leaves / settled.as_secs_f64(),
            p99_us: percentile(&latencies.concat(), 0.99),
        }
    }
}

struct Sample {
    per_second: f64,
    /// The same until nothing is left to do.
    settled_per_second: f64,
    p99_us: f64,
}

/// Flushes for many callers at once.
struct Flusher {
    state: Mutex<State>,
    wanted: Condvar,
    flushed: Condvar,
}

#[derive(Default)]
struct State {
    begun: u64,
    finished: u64,
    wanted: bool,
    ended: bool,
}

impl Flusher {
    /// Returns after a flush that began after this was called.
    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        let mine = state.begun + 1;
        if !state.wanted {
            state.wanted = true;
            self.wanted.notify_one();
        }
        while state.finished < mine {
            state = self.flushed.wait(state).unwrap();
        }
    }

    fn run(&self, flush: impl Fn()) {
        let mut state = self.state.lock().unwrap();
        while !state.ended {
            if !state.wanted {
                state = self.wanted.wait(state).unwrap();
                continue;
            }
            state.wanted = false;
            state.begun += 1;
            drop(state);
            flush();
            state = self.state.lock().unwrap();
            state.finished = state.begun;
            self.flushed.notify_all();
        }
    }

    fn end(&self) {
        self.state.lock().unwrap().ended = true;
        self.wanted.notify_one();
    }
}

fn main() -> Result<()> {
    let folder = temporary_folder()?;
    let db = TidalDb::open(folder.path().join("tidegate"))?;
    let file = preallocated(&folder.path().join("bare"))?;
    let growing = File::options()
        .create(true)
        .append(true)
        .open(folder.path().join("growing"))?;
    let unsynced = open_sled(&folder.path().join("unsynced"))?;
    let synced = open_sled(&folder.path().join("synced"))?;
    let data_file = File::open(folder.path().join("synced").join("db"))?;
    let flusher = Arc::new(Flusher {
        state: Mutex::default(),
        wanted: Condvar::new(),
        flushed: Condvar::new(),
    });
    let flushing = thread::spawn({
        let (flusher, synced) = (Arc::clone(&flusher), synced.clone());
        move || {
            flusher.run(|| {
                synced.flush().unwrap();
                data_file.sync_data().unwrap();
            });
        }
    });

    let insert = |db: &sled::Db, number: u64| {
        let mut record = [1; 9];
        record[1..].copy_from_slice(&number.to_le_bytes());
        db.insert(user(number).to_be_bytes(), &record).unwrap();
    };
    let peers = [
        Peer::new(TIDEGATE, &CALLERS, |number| {
            db.leave_community_layer(user(number)).unwrap();
        })
        .settled_by(|| db.flush().unwrap()),
        Peer::new(BARE, &CALLERS[..1], |number| {
            let mut block = [0; BLOCK];
            block[..8].copy_from_slice(&number.to_le_bytes());
            let offset = number % BLOCKS * BLOCK as u64;
            file.write_all_at(&block, offset).unwrap();
            file.sync_data().unwrap();
        }),
        Peer::new("sled, insert and flush", &CALLERS[..1], |number| {
            insert(&unsynced, number);
            unsynced.flush().unwrap();
        }),
        Peer::new(SHARED, &CALLERS, |number| {
            insert(&synced, number);
            flusher.wait();
        }),
        Peer::new(GROWING, &CALLERS[..1], |_| {
            (&growing).write_all(&[0; BLOCK]).unwrap();
            growing.sync_data().unwrap();
        }),
    ];
    let mut table = Table::new(
        "Durable leaves",
        peers
            .iter()
            .map(|peer| peer.name)
            .chain([STORED])
            .map(str::to_owned),
    );
    measure(&peers, &mut table);

    let leaves = |peer: &Peer<'_>| peer.next.load(Ordering::Relaxed);
    ensure!(db.stats().leaves == leaves(&peers[0]));
    ensure!(db.stats().left_users == leaves(&peers[0]));
    let mut last = [0; 8];
    let number = leaves(&peers[1]) - 1;
    file.read_exact_at(&mut last, number % BLOCKS * BLOCK as u64)?;
    ensure!(u64::from_le_bytes(last) == number);
    ensure!(unsynced.len() as u64 == leaves(&peers[2]));
    ensure!(synced.len() as u64 == leaves(&peers[3]));
    ensure!(growing.metadata()?.len() == leaves(&peers[4]) * BLOCK as u64);

    flusher.end();
    flushing.join().unwrap();
    let mut report = Report::new("durable_transitions");
    report.tables.push(table);
    report.curves = growth()?;
    report.publish()
}

fn measure(peers: &[Peer<'_>], table: &mut Table) {
    // Fewer rounds are enough where each takes a second.
    let rounds = if quick() { 2 } else { rounds().min(7) };
    let mut by_callers = Vec::new();
    for callers in CALLERS {
        let taking_part = || {
            let all = peers.iter().enumerate();
            all.filter(|(_, peer)| peer.callers.contains(&callers))
        };
        let mut contenders: Vec<_> = taking_part()
            .map(|(_, peer)| Contender::new(peer.name, move || peer.measure(callers)))
            .collect();
        let samples = interleave(&mut contenders, rounds);
        let mut rates = vec![Vec::new(); peers.len() + 1];
        let mut latencies = rates.clone();
        for ((row, peer), samples) in taking_part().zip(samples) {
            if peer.name == TIDEGATE {
                let settled = samples.iter().map(|sample| sample.settled_per_second);
                rates[peers.len()] = settled.collect();
            }
            rates[row] = samples.iter().map(|sample| sample.per_second).collect();
            latencies[row] = samples.iter().map(|sample| sample.p99_us).collect();
        }
        let baseline = if callers == 1 { BARE } else { SHARED };
        let of_callers = of_callers(callers);
        table.column(
            format!("{of_callers}, a second"),
            Some(baseline),
            rates.clone(),
        );
        table.column(format!("{of_callers}, p99 in µs"), None, latencies);
        by_callers.push(rates);
    }
    let (one, many) = (&by_callers[0], &by_callers[CALLERS.len() - 1]);
    table.column("64 callers against 1", None, ratios(many, one));
}

/// How a leave grows with the number of users who left: users who did leave again, so
/// that their number stays.
fn growth() -> Result<Vec<Curve>> {
    let stores = Stores::new()?;
    let mut curves = Vec::new();
    for left in growth_sizes(10_000_000) {
        let path = stores.with_left(left)?;
        let db = TidalDb::open(&path)?;
        let before = db.stats().leaves;
        let peer = Peer::new(TIDEGATE, &CALLERS, |number| {
            db.leave_community_layer(user(mix(number) % left)).unwrap();
        })
        .settled_by(|| db.flush().unwrap());
        for callers in [1, 64] {
            let mut contenders = [Contender::new(TIDEGATE, || peer.measure(callers))];
            let samples = interleave(&mut contenders, if quick() { 1 } else { 3 });
            let each = samples[0].iter().map(|sample| 1e6 / sample.per_second);
            curves.push(Curve {
                chart: "Durable leaves".to_owned(),
                line: of_callers(callers),
                unit: "µs a leave".to_owned(),
                points: vec![(left, median(&each.collect::<Vec<_>>()))],
            });
        }
        let leaves = peer.next.load(Ordering::Relaxed);
        drop(peer);
        ensure!(db.stats().leaves == before + leaves && db.stats().left_users == left);
        drop(db);
        // Its journal is compacted again, as whoever opens the store next expects.
        drop(TidalDb::open(&path)?);
    }
    Ok(Curve::merged(curves))
}

fn of_callers(callers: usize) -> String {
    match callers {
        1 => "1 caller".to_owned(),
        _ => format!("{callers} callers"),
    }
}

fn preallocated(path: &Path) -> Result<File> {
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(path)?;
    for block in 0..BLOCKS {
        file.write_all_at(&[0; BLOCK], block * BLOCK as u64)?;
    }
    file.sync_all()?;
    Ok(file)
}

fn open_sled(folder: &Path) -> Result<sled::Db> {
    Ok(sled::Config::new()
        .path(folder)
        .flush_every_ms(None)
        .open()?)
}
