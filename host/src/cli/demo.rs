//! `demo`: signals flow, users leave, more signals flow, some rejoin, and what the
//! communities gained over time, with the store reopened at the end.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;

use tidegate::events::{Columns, Event, EventReader, Format, Subject};
use tidegate::{MembershipStatus, Scope, Signal, TidalDb};

use super::{Context, Outcome};

/// The events, made up for this purpose.
const EVENTS: &[u8] = include_bytes!("../../demo/events.jsonl");

/// How many columns the chart has.
const COLUMNS: usize = 60;

/// One community over time, which here is the order of the events.
#[derive(Serialize)]
struct Timeline {
    community: String,
    /// What the community's aggregate gained in each column.
    forwarded: Vec<u64>,
    /// The signals of its members that it did not gain.
    held_back: Vec<u64>,
}

#[derive(Serialize)]
struct Report {
    signals: u64,
    timelines: Vec<Timeline>,
    /// The columns in which users left and rejoined.
    leaves: Vec<usize>,
    rejoins: Vec<usize>,
    left_after_reopening: Vec<u64>,
}

pub(super) fn run(context: &Context) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("make a temporary folder")?;
    let db = TidalDb::open(folder.path())?;
    let mut report = play(&db)?;
    drop(db);

    let reopened = TidalDb::open(folder.path())?;
    report.left_after_reopening = still_left(&reopened, &report.left_after_reopening)?;
    context.output.print(&report, Report::text)?;
    Ok(Outcome::Done)
}

/// Applies the events and counts, from the aggregates themselves, what arrived.
fn play(db: &TidalDb) -> Result<Report> {
    let subject = Subject::Events(Columns::default());
    let total = EVENTS.trim_ascii_end().split(|byte| *byte == b'\n').count();
    let mut events = EventReader::new(EVENTS, Format::Jsonl, &subject)?;
    let mut communities_of: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut timelines: BTreeMap<String, Timeline> = BTreeMap::new();
    let mut report = Report {
        signals: 0,
        timelines: Vec::new(),
        leaves: Vec::new(),
        rejoins: Vec::new(),
        left_after_reopening: Vec::new(),
    };
    let mut index = 0;
    while let Some(event) = events.next_event()? {
        let column = index * COLUMNS / total;
        index += 1;
        match event {
            Event::Join { user_id, community } => {
                db.join_community(user_id, &community)?;
                communities_of
                    .entry(user_id)
                    .or_default()
                    .push(community.clone().into_owned());
                timelines
                    .entry(community.clone().into_owned())
                    .or_insert_with(|| Timeline {
                        community: community.into_owned(),
                        forwarded: vec![0; COLUMNS],
                        held_back: vec![0; COLUMNS],
                    });
            }
            Event::Leave { user_id } => {
                db.leave_community_layer(user_id)?;
                report.leaves.push(column);
                report.left_after_reopening.push(user_id);
            }
            Event::Rejoin { user_id } => {
                db.rejoin_community_layer(user_id)?;
                report.rejoins.push(column);
                report.left_after_reopening.retain(|left| *left != user_id);
            }
            Event::Signal {
                user_id,
                item_id,
                kind,
                weight,
            } => {
                let signal = Signal {
                    item_id,
                    kind: &kind,
                    weight,
                };
                report.signals += 1;
                let joined = communities_of.get(&user_id).map_or(&[][..], Vec::as_slice);
                let before = counts(db, joined, &signal)?;
                db.signal_with_context(user_id, &signal)?;
                let gained = counts(db, joined, &signal)?.into_iter().zip(before);
                for (name, (after, before)) in joined.iter().zip(gained) {
                    let Some(timeline) = timelines.get_mut(name) else {
                        continue;
                    };
                    timeline.forwarded[column] += after - before;
                    timeline.held_back[column] += 1 - (after - before);
                }
            }
            Event::Quit { .. } | Event::Profile { .. } => bail!("the demo has no such events"),
        }
    }
    report.timelines = timelines.into_values().collect();
    Ok(report)
}

/// How often each of these communities gained the signal's item and kind.
fn counts(db: &TidalDb, communities: &[String], signal: &Signal<'_>) -> Result<Vec<u64>> {
    communities
        .iter()
        .map(|name| {
            let scope = Scope::Community(name.clone());
            Ok(db.aggregate(&scope, signal.item_id, signal.kind)?.count)
        })
        .collect()
}

/// Which of these users the store says have left, and gates.
fn still_left(db: &TidalDb, users: &[u64]) -> Result<Vec<u64>> {
    let mut left = Vec::new();
    for user_id in users {
        let status = db.community_layer_status(*user_id)?.status;
        let signal = Signal {
            item_id: 1,
            kind: "view",
            weight: 1.0,
        };
        let gated = db.signal_with_context(*user_id, &signal)?.gated;
        if status == MembershipStatus::Left && gated {
            left.push(*user_id);
        }
    }
    Ok(left)
}

impl Report {
    fn text(&self) -> String {
        let highest = self
            .timelines
            .iter()
            .flat_map(|timeline| timeline.forwarded.iter().chain(&timeline.held_back))
            .max()
            .copied()
            .unwrap_or(0);
        let mut lines = vec![
            format!(
                "{} signals in {} communities; {} users leave, {} of them rejoin",
                self.signals,
                self.timelines.len(),
                self.leaves.len(),
                self.rejoins.len()
            ),
            String::new(),
            format!("{:24}{}", "", markers(&self.leaves, &self.rejoins)),
        ];
        for timeline in &self.timelines {
            let rows = [
                ("forwarded", &timeline.forwarded),
                ("held back", &timeline.held_back),
            ];
            for (row, counts) in rows {
                let sum: u64 = counts.iter().sum();
                lines.push(format!(
                    "{:8}{row:10}{sum:>5} {}",
                    if row == "forwarded" {
                        timeline.community.as_str()
                    } else {
                        ""
                    },
                    sparkline(counts, highest)
                ));
            }
        }
        lines.push(String::new());
        lines.push("v users leave   ^ users rejoin".to_owned());
        lines.push(format!(
            "after the store was closed and reopened, users {:?} have still left, and their signals are held back",
            self.left_after_reopening
        ));
        lines.join("\n")
    }
}

fn markers(leaves: &[usize], rejoins: &[usize]) -> String {
    let mut marks = vec![' '; COLUMNS];
    for (columns, mark) in [(leaves, 'v'), (rejoins, '^')] {
        for column in columns {
            marks[*column] = mark;
        }
    }
    marks.into_iter().collect()
}

/// A character for each count, as high as it is compared with `highest`.
fn sparkline(counts: &[u64], highest: u64) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let steps = HEIGHTS.len() as u64 - 1;
    counts
        .iter()
        .map(|count| {
            let height = (count * steps).div_ceil(highest.max(1)).min(steps);
            usize::try_from(height).map_or(' ', |height| HEIGHTS[height])
        })
        .collect()
}
