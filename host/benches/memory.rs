//! Table 7: resident memory for each user who left.
//!
//! A process of its own opens the store and reads its `VmRSS`; what a process with an empty
//! store takes is taken off. It is what the system counts, with everything that opening
//! leaves behind, such as the pages that sled keeps in its cache. The bare map, filled the
//! same way as for `gate_check`, is measured the same way.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

use std::process::Command;

use anyhow::{Result, ensure};
use foldhash::fast::RandomState as FoldHash;
use support::inputs::user;
use support::processes::memory_of;
use support::report::{Curve, Report, Table, number};
use support::stores::Stores;
use support::{Contender, growth_sizes, interleave, maps, median, size};
use tidegate::{FanOut, TidalDb};

/// What a process that is started to be measured holds: a store's path or a map.
const HOLD: &str = "TIDEGATE_BENCH_HOLD";
/// And for how many users.
const LEFT: &str = "TIDEGATE_BENCH_LEFT";
const MAP: &str = "map";
const TIDEGATE: &str = "tidegate";
const BARE: &str = "DashMap, foldhash";

/// The resident bytes of a process with all users, and of one with none.
struct Sample {
    whole: f64,
    empty: f64,
}

impl Sample {
    fn added(&self) -> f64 {
        self.whole - self.empty
    }
}

fn whole_mib(samples: &[Sample]) -> Vec<f64> {
    let mib = |sample: &Sample| sample.whole / f64::from(1 << 20);
    samples.iter().map(mib).collect()
}

fn main() -> Result<()> {
    if let Ok(what) = std::env::var(HOLD) {
        return hold(&what, std::env::var(LEFT)?.parse()?);
    }
    let stores = Stores::new()?;
    let mut report = Report::new("memory");
    let tables = [size(1_000_000, 1_000), size(10_000_000, 10_000)];
    for left in growth_sizes(10_000_000) {
        let store = stores.with_left(left)?;
        let empty = stores.with_left(0)?;
        let mut contenders = [
            Contender::new(TIDEGATE, || Sample {
                whole: resident(store.to_str().unwrap(), left),
                empty: resident(empty.to_str().unwrap(), 0),
            }),
            Contender::new(BARE, || Sample {
                whole: resident(MAP, left),
                empty: resident(MAP, 0),
            }),
        ];
        let rounds = if left <= 1_000_000 { 5 } else { 3 };
        let samples = interleave(&mut contenders, rounds);
        for (name, samples) in [TIDEGATE, BARE].into_iter().zip(&samples) {
            report.curves.push(Curve {
                chart: "Memory".to_owned(),
                line: name.to_owned(),
                unit: "MiB of the process".to_owned(),
                points: vec![(left, median(&whole_mib(samples)))],
            });
        }
        if tables.contains(&left) {
            let title = format!("Memory with {} users who left", number(left as f64));
            let mut table = Table::new(title, [TIDEGATE, BARE].map(str::to_owned));
            let whole = samples.iter().map(|samples| whole_mib(samples));
            table.column("the process, MiB", None, whole.collect());
            let each = samples.iter().map(|samples| {
                let each = samples.iter().map(|sample| sample.added() / left as f64);
                each.collect()
            });
            table.column("bytes a user", Some(BARE), each.collect());
            report.tables.push(table);
        }
    }
    report.curves = Curve::merged(std::mem::take(&mut report.curves));
    report.publish()
}

/// The resident bytes of a process that holds `what`.
fn resident(what: &str, left: u64) -> f64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .env(HOLD, what)
        .env(LEFT, left.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn hold(what: &str, left: u64) -> Result<()> {
    let check: Box<dyn Fn(u64) -> FanOut> = if what == MAP {
        Box::new(maps::dash_map::<FoldHash>(left))
    } else {
        let db = TidalDb::open(what)?;
        ensure!(db.stats().left_users == left);
        Box::new(move |user| db.fan_out(user))
    };
    let bytes = memory_of(std::process::id(), "VmRSS")?;
    ensure!(check(user(left)) == FanOut::ALL);
    ensure!(left == 0 || check(user(left - 1)) == FanOut::NONE);
    println!("{bytes}");
    Ok(())
}
