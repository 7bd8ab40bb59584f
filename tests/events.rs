//! The formats of event files through `ingest` and `profiles`: what they mean, in
//! which order, and what becomes of a line that means nothing.

/// Lines that mean nothing: stopped at, or skipped and collected.
mod bad_lines;

/// CSV, TSV and RecBole's atomic files.
mod columns;

/// Inputs packed with gzip.
mod gzip;

/// JSON lines of all types, and the order of events.
mod jsonl;

/// `profiles`, and what cohorts make of attributes.
mod profiles;

use serde_json::Value;

use crate::support::program::Program;

/// The rows of a scope: item, kind, count and weight.
fn rows(program: &Program, scope: &[&str]) -> Vec<(u64, String, u64, f64)> {
    let top = program.json(&[&["top", "--limit", "1000"], scope].concat());
    let row = |row: &Value| {
        (
            row["item_id"].as_u64().unwrap(),
            row["kind"].as_str().unwrap().to_owned(),
            row["count"].as_u64().unwrap(),
            row["weight"].as_f64().unwrap(),
        )
    };
    top["rows"].as_array().unwrap().iter().map(row).collect()
}

/// A row as [`rows`] gives it.
fn row(item_id: u64, kind: &str, count: u64, weight: f64) -> (u64, String, u64, f64) {
    (item_id, kind.to_owned(), count, weight)
}
