//! Tables, as JSON for the summary and as Markdown.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::processes::target_folder;
use crate::{median, quick};

/// What one benchmark found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub tables: Vec<Table>,
    pub curves: Vec<Curve>,
    /// What a reader has to know, such as what was left out.
    pub notes: Vec<String>,
}

/// Contenders by what was measured of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub rows: Vec<String>,
    pub columns: Vec<Column>,
}

/// One thing that was measured of all contenders, in rounds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Column {
    pub title: String,
    /// The row that the others are compared with, in each round.
    pub baseline: Option<usize>,
    /// By row, then by round; a row that was not measured has none.
    pub samples: Vec<Vec<f64>>,
}

/// How a cost grows with the number of users.
#[derive(Debug, Serialize, Deserialize)]
pub struct Curve {
    pub chart: String,
    pub line: String,
    pub unit: String,
    /// Users, and the cost with so many.
    pub points: Vec<(u64, f64)>,
}

impl Table {
    pub fn new(title: impl Into<String>, rows: impl IntoIterator<Item = String>) -> Self {
        Table {
            title: title.into(),
            rows: rows.into_iter().collect(),
            columns: Vec::new(),
        }
    }

    /// Adds a column, its samples by row; `baseline` names the row to compare with.
    pub fn column(
        &mut self,
        title: impl Into<String>,
        baseline: Option<&str>,
        samples: Vec<Vec<f64>>,
    ) {
        assert_eq!(samples.len(), self.rows.len());
        self.columns.push(Column {
            title: title.into(),
            baseline: baseline.and_then(|name| self.rows.iter().position(|row| row == name)),
            samples,
        });
    }
}

impl Curve {
    /// Joins the points of the same line.
    pub fn merged(parts: Vec<Curve>) -> Vec<Curve> {
        let mut curves: Vec<Curve> = Vec::new();
        for part in parts {
            let same = |curve: &&mut Curve| curve.chart == part.chart && curve.line == part.line;
            match curves.iter_mut().find(same) {
                Some(curve) => curve.points.extend(part.points),
                None => curves.push(part),
            }
        }
        curves
    }
}

impl Column {
    /// The median of a row, and of its ratios to the baseline.
    pub fn cell(&self, row: usize) -> Option<(f64, Option<f64>)> {
        let samples = &self.samples[row];
        if samples.is_empty() {
            return None;
        }
        let ratio = self.baseline.map(|baseline| {
            let pairs = samples.iter().zip(&self.samples[baseline]);
            median(&pairs.map(|(one, other)| one / other).collect::<Vec<_>>())
        });
        Some((median(samples), ratio))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "**{}**\n", self.title)?;
        write!(f, "| |")?;
        for column in &self.columns {
            write!(f, " {} |", column.title)?;
        }
        write!(f, "\n|---|")?;
        for _ in &self.columns {
            write!(f, "---:|")?;
        }
        for (row, name) in self.rows.iter().enumerate() {
            write!(f, "\n| {name} |")?;
            for column in &self.columns {
                match column.cell(row) {
                    None => write!(f, " |")?,
                    Some((value, None)) => write!(f, " {} |", number(value))?,
                    Some((value, Some(ratio))) => {
                        write!(f, " {} ({}×) |", number(value), number(ratio))?;
                    }
                }
            }
        }
        writeln!(f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(f, "{table}")?;
        }
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        Ok(())
    }
}

impl Report {
    pub fn new(name: &str) -> Self {
        Report {
            name: name.to_owned(),
            ..Report::default()
        }
    }

    /// Prints the report and keeps it for the summary.
    pub fn publish(&self) -> Result<()> {
        print!("{self}");
        let folder = folder()?;
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}.json", self.name));
        fs::write(&file, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("`{}`", file.display()))
    }

    /// The report of a benchmark that has run; `None` if it has not.
    pub fn published(name: &str) -> Result<Option<Self>> {
        let file = folder()?.join(format!("{name}.json"));
        if !file.exists() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&fs::read(file)?)?))
    }
}

/// Where reports and the summary are kept.
pub fn folder() -> Result<PathBuf> {
    let folder = target_folder()?.join("benchmarks");
    // Small runs say nothing and take the place of nothing.
    Ok(if quick() {
        folder.join("quick")
    } else {
        folder
    })
}

/// Three digits that count, and groups of three.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = if value < 0.0 { "-" } else { "" }.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(grouped, ".{fraction}");
    }
    grouped
}
