//! Table 2: the gate check by two threads at once, beside one.
//!
//! The users, the probes and the maps are those of `gate_check`; each thread has probes of
//! its own. A speed-up of 2 is what two cores can give. It is worked out in each round
//! from the two measurements next to each other, and the table shows its median.
//!
//! Peers that cross to another process or lock one connection are left out here.

use std::hash::RandomState as DefaultHasher;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use foldhash::fast::RandomState as FoldHash;
use support::inputs::Population;
use support::report::{Report, Table, number};
use support::stores::Stores;
use support::{Contender, interleave, maps, on_threads, ratios, repeats, rounds, size};
use tidegate::FanOut;

const THREADS: usize = 2;

/// Asks about each of some users, and returns how many were let through.
type Ask = Box<dyn Fn(&[u64]) -> u64 + Sync>;

fn peer(check: impl Fn(u64) -> FanOut + Sync + 'static) -> Ask {
    Box::new(move |probes| {
        probes
            .iter()
            .map(|user| u64::from(check(*user).community_forwarding))
            .sum()
    })
}

fn main() -> Result<()> {
    let stores = Stores::new()?;
    let mut report = Report::new("scaling");
    let cores = thread::available_parallelism()?.get();
    if cores < THREADS {
        report.notes.push(format!(
            "This machine has {cores} core: a speed-up is not to be had."
        ));
    }
    for left in [size(10_000, 1_000), size(1_000_000, 10_000)] {
        measure(left, &stores, &mut report)?;
    }
    report.publish()
}

fn measure(left: u64, stores: &Stores, report: &mut Report) -> Result<()> {
    let db = stores.open_with_left(left)?;
    let peers: Vec<(&str, Ask)> = vec![
        (
            "tidegate, fence included",
            peer(move |user| db.fan_out(user)),
        ),
        ("DashMap, foldhash", peer(maps::dash_map::<FoldHash>(left))),
        (
            "DashMap, foldhash, 256 shards",
            peer(maps::sharded_dash_map::<FoldHash>(left, 256)),
        ),
        (
            "DashMap, default hasher",
            peer(maps::dash_map::<DefaultHasher>(left)),
        ),
        (
            "RwLock<HashMap>, foldhash",
            peer(maps::locked_map::<FoldHash>(left)),
        ),
        ("papaya, foldhash", peer(maps::papaya::<FoldHash>(left))),
        (
            "HashMap that never changes, foldhash",
            peer(maps::frozen_map::<FoldHash>(left)),
        ),
    ];
    #[expect(clippy::cast_precision_loss, reason = "a round number")]
    let title = format!(
        "Gate check by {THREADS} threads, {} users left",
        number(left as f64)
    );
    let mut table = Table::new(title, peers.iter().map(|(name, _)| (*name).to_owned()));
    for population in Population::ALL {
        let probes: Vec<Vec<u64>> = (1..=THREADS as u64)
            .map(|seed| population.probes(left, left.clamp(1 << 12, 1 << 20), seed))
            .collect();
        let expected = u64::from(population == Population::NeverLeft);
        let mut contenders = Vec::new();
        for (name, ask) in &peers {
            ensure!(ask(&probes[0]) == expected * probes[0].len() as u64);
            let enough = Duration::from_millis(size(50, 1));
            let passes = repeats(enough, || {
                black_box(ask(black_box(&probes[0])));
            });
            for threads in [1, THREADS] {
                let probes = &probes;
                contenders.push(Contender::new(*name, move || {
                    time(ask, &probes[..threads], passes, expected)
                }));
            }
        }
        let samples = interleave(&mut contenders, rounds());
        let (one, two): (Vec<_>, Vec<_>) = samples
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .unzip();
        let speed_up = ratios(&one, &two);
        let name = population.name();
        table.column(format!("{name}, 1 thread, ns a check"), None, one);
        table.column(format!("{name}, {THREADS} threads, ns a check"), None, two);
        table.column(format!("{name}, speed-up"), None, speed_up);
    }
    report.tables.push(table);
    Ok(())
}

/// The nanoseconds that pass for each check, whichever thread makes it.
fn time(ask: &Ask, probes: &[Vec<u64>], passes: u32, expected: u64) -> f64 {
    let (elapsed, let_through) = on_threads(probes.len(), |thread| {
        (0..passes)
            .map(|_| ask(black_box(&probes[thread])))
            .sum::<u64>()
    });
    let checks = probes.iter().map(Vec::len).sum::<usize>() as u64 * u64::from(passes);
    assert_eq!(let_through.iter().sum::<u64>(), checks * expected);
    #[expect(clippy::cast_precision_loss, reason = "rounded when printed")]
    let nanoseconds = elapsed.as_nanos() as f64 / checks as f64;
    nanoseconds
}
