//! `cargo bench`: the tables of the benchmark one after the other, then the summary.
//!
//! ```sh
//! cargo bench                             # all of them
//! cargo bench -- gate_check scaling       # some
//! TIDEGATE_BENCH_QUICK=1 cargo bench      # all of them small, to see that they work
//! TIDEGATE_BENCH_LARGEST=1000000 cargo bench  # growth up to a million users alone
//! ```
//!
//! The tables are a package of their own, because Cargo compiles what a package needs for
//! its benchmarks for its tests too, and policy engines and databases are a lot to compile.
//! This only starts them, and keeps the stores that they share while they run.

use std::io;
use std::process::{Command, ExitCode};

const TABLES: [&str; 8] = [
    "gate_check",
    "scaling",
    "whole_signal",
    "ingest",
    "start_up",
    "memory",
    "durable_transitions",
    "component",
];

fn main() -> io::Result<ExitCode> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !TABLES.contains(&name.as_str())) {
        eprintln!("no table `{unknown}`; there are {}", TABLES.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    let stores = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let is_wanted = |name: &&&str| wanted.is_empty() || wanted.iter().any(|one| one == **name);
    for table in TABLES.iter().filter(is_wanted).chain(&["summary"]) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args([
                "bench",
                "--quiet",
                "--locked",
                "--package",
                "tidegate-benchmarks",
            ])
            .args(["--bench", table])
            .env("TIDEGATE_BENCH_STORES", stores.path())
            .status()?;
        if !status.success() {
            eprintln!("the table `{table}` failed");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
