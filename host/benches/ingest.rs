//! Table 4: `tidegate ingest` of JSON lines, parsing included, and the peak of its memory.
//!
//! The lines are MovieLens 100k as signals, repeated, if `TIDEGATE_MOVIELENS` names a
//! folder with `ml-100k.inter`; otherwise 100,000 ratings of the same shape by a seeded
//! generator, repeated: 943 users, 1,682 items, 1 to 5 stars. Each run starts the released
//! program on a new store and reads its `VmHWM` until it ends.
//!
//! What it takes is the time of the whole program: it opens the store, reads the lines, and
//! ends when all of it is durable.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use support::inputs::Random;
use support::processes::{memory_of, temporary_folder, tidegate};
use support::report::{Report, Table, number};
use support::{Contender, interleave, quick, size};

const RATINGS: u64 = 100_000;

/// User, item and stars.
type Rating = (u64, u64, u64);

struct Sample {
    lines_per_second: f64,
    peak_mib: f64,
}

fn main() -> Result<()> {
    let folder = temporary_folder()?;
    let mut report = Report::new("ingest");
    let ratings = if let Some(data) = std::env::var_os("TIDEGATE_MOVIELENS") {
        report
            .notes
            .push("The lines are MovieLens 100k, repeated.".to_owned());
        movielens(&PathBuf::from(data))?
    } else {
        report.notes.push(
            "The lines are generated in the shape of MovieLens 100k: `TIDEGATE_MOVIELENS` names no folder."
                .to_owned(),
        );
        generated()
    };
    ensure!(ratings.len() as u64 == RATINGS);
    let (few, many) = (size(5, 1), size(50, 2));
    let inputs = [
        (
            "JSON lines",
            write(&ratings, few, &folder.path().join("few.jsonl"))?,
            few,
        ),
        (
            "JSON lines",
            write(&ratings, many, &folder.path().join("many.jsonl"))?,
            many,
        ),
        (
            "JSON lines, packed with gzip",
            write_packed(&ratings, many, &folder.path().join("many.jsonl.gz"))?,
            many,
        ),
    ];
    let stars: u64 = ratings.iter().map(|rating| rating.2).sum();
    let program = tidegate()?;
    let store = folder.path().join("store");
    let mut contenders: Vec<_> = inputs
        .iter()
        .map(|(name, file, passes)| {
            let name = format!("{} {name}", number((passes * RATINGS) as f64));
            let (program, store) = (&program, &store);
            Contender::new(name, move || {
                ingest(program, store, file, *passes, stars * passes).unwrap()
            })
        })
        .collect();
    let samples = interleave(&mut contenders, if quick() { 1 } else { 5 });
    let mut table = Table::new(
        "`tidegate ingest`",
        contenders.iter().map(|contender| contender.name.clone()),
    );
    let column = |value: fn(&Sample) -> f64| {
        let rows = samples.iter().map(|row| row.iter().map(value).collect());
        rows.collect::<Vec<Vec<f64>>>()
    };
    table.column(
        "lines a second",
        None,
        column(|sample| sample.lines_per_second),
    );
    let smallest = table.rows[0].clone();
    table.column(
        "peak of resident memory, MiB",
        Some(&smallest),
        column(|sample| sample.peak_mib),
    );
    report.tables.push(table);
    report.publish()
}

fn movielens(folder: &Path) -> Result<Vec<Rating>> {
    let file = folder.join("ml-100k.inter");
    let text = fs::read_to_string(&file).with_context(|| format!("`{}`", file.display()))?;
    text.lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split('\t').map(str::parse);
            let mut next = || {
                fields
                    .next()
                    .context("a field is missing")?
                    .context("a field")
            };
            Ok((next()?, next()?, next()?))
        })
        .collect()
}

fn generated() -> Vec<Rating> {
    let mut random = Random::new(1);
    (0..RATINGS)
        .map(|_| {
            (
                1 + random.below(943),
                1 + random.below(1_682),
                1 + random.below(5),
            )
        })
        .collect()
}

fn lines(ratings: &[Rating]) -> String {
    let mut text = String::new();
    for (user, item, stars) in ratings {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            r#"{{"user_id": {user}, "item_id": {item}, "kind": "rating", "weight": {stars}}}"#
        );
    }
    text
}

fn write(ratings: &[Rating], passes: u64, file: &Path) -> Result<PathBuf> {
    let lines = lines(ratings);
    let mut output = BufWriter::new(File::create_new(file)?);
    for _ in 0..passes {
        output.write_all(lines.as_bytes())?;
    }
    output.into_inner()?.sync_all()?;
    Ok(file.to_owned())
}

fn write_packed(ratings: &[Rating], passes: u64, file: &Path) -> Result<PathBuf> {
    let lines = lines(ratings);
    let mut output = GzEncoder::new(
        BufWriter::new(File::create_new(file)?),
        Compression::default(),
    );
    for _ in 0..passes {
        output.write_all(lines.as_bytes())?;
    }
    output.finish()?.into_inner()?.sync_all()?;
    Ok(file.to_owned())
}

/// Ingests a file into a new store and checks that all of it is there.
fn ingest(program: &Path, store: &Path, file: &Path, passes: u64, stars: u64) -> Result<Sample> {
    if store.exists() {
        fs::remove_dir_all(store)?;
    }
    let lines = passes * RATINGS;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(["--json", "--store"])
        .arg(store)
        .arg("ingest")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut peak = 0;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the ingest failed");
            break started.elapsed();
        }
        // It may have ended since.
        peak = memory_of(child.id(), "VmHWM").unwrap_or(peak);
        thread::sleep(Duration::from_millis(2));
    };
    let summary: Value = serde_json::from_reader(child.stdout.take().context("its output")?)?;
    ensure!(
        summary["signals"] == lines && summary["rejected"] == 0,
        "{summary}"
    );
    let top = Command::new(program)
        .args(["--json", "--store"])
        .arg(store)
        .args(["top", "--limit", "100000"])
        .output()?;
    let top: Value = serde_json::from_slice(&top.stdout)?;
    let rows = top["rows"].as_array().context("rows")?;
    let weights = rows.iter().filter_map(|row| row["weight"].as_f64());
    let sum: f64 = weights.sum();
    ensure!((sum - stars as f64).abs() < 0.5, "{sum} of {stars} stars");
    Ok(Sample {
        lines_per_second: lines as f64 / ended.as_secs_f64(),
        peak_mib: peak as f64 / f64::from(1 << 20),
    })
}
