//! What is printed: a line for a person or a JSON object for a program.

use std::io::{self, Write as _};

use jiff::Timestamp;
use serde::Serialize;

pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Output { json }
    }

    /// Whether standard output holds one JSON object a line.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `object` as one line of JSON, or else what `text` makes of it, and
    /// passes it on at once, so that what was acknowledged is seen. Where nobody
    /// reads any more the command goes on, and ends as it would have: `leave 1 2 |
    /// head -1` leaves for both.
    pub(super) fn print<T: Serialize>(
        &self,
        object: &T,
        text: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        let mut line = if self.json {
            serde_json::to_string(object)?
        } else {
            text(object)
        };
        line.push('\n');
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(line.as_bytes());
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// Text that came from outside, without what would move a terminal's cursor or
/// change its colors.
pub(super) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// As in `1 line` and `2 lines`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// An instant as RFC 3339 says it, to the nanosecond.
pub(super) fn rfc3339(ns: u64) -> String {
    // Every u64 of nanoseconds is before the year 2555, which jiff can say.
    Timestamp::from_nanosecond(ns.into()).map_or_else(|_| ns.to_string(), |at| at.to_string())
}

/// Text in columns, the first aligned left and the others right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}
