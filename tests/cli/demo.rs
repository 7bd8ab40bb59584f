//! `demo`, compared with a count of its events by plain loops.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::program::Program;
use crate::support::repository;

/// What the demo should show.
#[derive(Default)]
struct Expected {
    signals: u64,
    /// For each community what was forwarded and held back in each column.
    counts: BTreeMap<String, (Vec<u64>, Vec<u64>)>,
    leaves: Vec<usize>,
    rejoins: Vec<usize>,
    left: BTreeSet<u64>,
}

/// Counts the events that ship with the project; each of `columns` stands for the
/// same share of them.
fn count(columns: usize) -> Expected {
    let events = std::fs::read_to_string(repository().join("host/demo/events.jsonl")).unwrap();
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut expected = Expected::default();
    let mut members: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let column = index * columns / events.len();
        let user_id = event["user_id"].as_u64().unwrap();
        match event["type"].as_str().unwrap_or("signal") {
            "join" => {
                let community = event["community"].as_str().unwrap().to_owned();
                let empty = || (vec![0; columns], vec![0; columns]);
                expected
                    .counts
                    .entry(community.clone())
                    .or_insert_with(empty);
                members.entry(community).or_default().insert(user_id);
            }
            "leave" => {
                expected.leaves.push(column);
                expected.left.insert(user_id);
            }
            "rejoin" => {
                expected.rejoins.push(column);
                expected.left.remove(&user_id);
            }
            "signal" => {
                expected.signals += 1;
                for (community, users) in &members {
                    let (forwarded, held_back) = expected.counts.get_mut(community).unwrap();
                    if !users.contains(&user_id) {
                        continue;
                    }
                    if expected.left.contains(&user_id) {
                        held_back[column] += 1;
                    } else {
                        forwarded[column] += 1;
                    }
                }
            }
            other => panic!("the demo has an event of type {other}"),
        }
    }
    expected
}

fn numbers<T: TryFrom<u64, Error: std::fmt::Debug>>(array: &Value) -> Vec<T> {
    let numbers = array.as_array().unwrap().iter();
    numbers
        .map(|number| number.as_u64().unwrap().try_into().unwrap())
        .collect()
}

#[test]
fn the_demo_shows_what_the_communities_gained_and_what_was_held_back() {
    let program = Program::new();
    let report = program.json(&["demo"]);
    let timelines = report["timelines"].as_array().unwrap();
    let columns = timelines[0]["forwarded"].as_array().unwrap().len();
    let expected = count(columns);

    assert_eq!(report["signals"], expected.signals);
    assert_eq!(timelines.len(), expected.counts.len());
    for (timeline, (community, (forwarded, held_back))) in timelines.iter().zip(&expected.counts) {
        assert_eq!(timeline["community"], community.as_str());
        assert_eq!(
            &numbers::<u64>(&timeline["forwarded"]),
            forwarded,
            "{community}"
        );
        assert_eq!(
            &numbers::<u64>(&timeline["held_back"]),
            held_back,
            "{community}"
        );
    }
    assert_eq!(numbers::<usize>(&report["leaves"]), expected.leaves);
    assert_eq!(numbers::<usize>(&report["rejoins"]), expected.rejoins);
    let still_left = numbers::<u64>(&report["left_after_reopening"]);
    assert_eq!(BTreeSet::from_iter(still_left), expected.left);

    // Or else there would be nothing to see.
    assert!(!expected.left.is_empty() && !expected.rejoins.is_empty());
    assert!(
        expected
            .counts
            .values()
            .all(|(_, held_back)| held_back.iter().sum::<u64>() > 0)
    );
    assert!(
        !program.path("store").exists(),
        "the demo's store is a temporary one"
    );
}

#[test]
fn the_demo_draws_a_chart_with_the_leaves_and_rejoins_marked() {
    let text = Program::new().text(&["demo"]);
    let columns = 60;
    let expected = count(columns);

    let mut marks = vec![' '; columns];
    expected
        .leaves
        .iter()
        .for_each(|column| marks[*column] = 'v');
    expected
        .rejoins
        .iter()
        .for_each(|column| marks[*column] = '^');
    let marks: String = marks.into_iter().collect();
    assert!(text.contains(marks.trim()), "{text}");

    for (community, (forwarded, held_back)) in &expected.counts {
        let mut lines = text
            .lines()
            .skip_while(|line| !line.starts_with(community.as_str()));
        for (name, counts) in [("forwarded", forwarded), ("held back", held_back)] {
            let line = lines.next().unwrap();
            let sum: u64 = counts.iter().sum();
            assert!(
                line.contains(name) && line.contains(&format!(" {sum} ")),
                "{line}"
            );
            // A bar for each column that has something in it, and for no other.
            let chart: Vec<char> = line.chars().skip(24).collect();
            for (column, count) in counts.iter().enumerate() {
                let drawn = chart.get(column).is_some_and(|character| *character != ' ');
                assert_eq!(drawn, *count > 0, "column {column} of {line}");
            }
        }
    }
    let last = text.lines().last().unwrap();
    assert!(last.contains("reopened"), "{last}");
    for user_id in &expected.left {
        assert!(last.contains(&user_id.to_string()), "{last}");
    }
}
