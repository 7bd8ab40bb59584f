//! JSON lines of all types, and the order of events.

use crate::support::program::Program;

use super::{row, rows};

/// A user leaves, and so on, in the middle of their signals.
const STORY: &str = r#"{"type":"profile","user_id":1,"attributes":{"age":20}}
{"type":"join","user_id":1,"community":"film"}
{"type":"signal","user_id":1,"item_id":10,"kind":"view","weight":2}
{"type":"leave","user_id":1}
{"user_id":1,"item_id":10,"kind":"view","weight":4}
{"type":"leave","user_id":1}
{"type":"rejoin","user_id":1}
{"user_id":1,"item_id":10,"kind":"view","weight":8}
{"type":"quit","user_id":1,"community":"film"}
{"user_id":1,"item_id":10,"kind":"view","weight":16}
{"type":"profile","user_id":1,"attributes":{"age":30}}
{"user_id":1,"item_id":10,"kind":"view","weight":32}
"#;

#[test]
fn events_are_applied_in_their_order() {
    let program = Program::new();
    program.text(&["cohort", "define", "young", "age < 25"]);
    program.write("story.jsonl", STORY);
    let summary = program.text(&["--json", "ingest", "story.jsonl"]);
    // By hand: five signals, one of them while the user had left; the cohort gains
    // 2, 8 and 16, the community 2 and 8.
    let expected = concat!(
        r#"{"signals":5,"leaves":2,"rejoins":1,"rejected":0,"cohort_contributions":3,"#,
        r#""community_contributions":2,"gated_cohort_attribution":1,"#,
        r#""gated_community_forwarding":1,"seconds":"#
    );
    let seconds = summary
        .strip_prefix(expected)
        .unwrap_or_else(|| panic!("{summary}"));
    let seconds: f64 = seconds
        .trim_end()
        .strip_suffix('}')
        .unwrap()
        .parse()
        .unwrap();
    assert!(seconds > 0.0);

    assert_eq!(rows(&program, &[]), [row(10, "view", 5, 62.0)]);
    assert_eq!(
        rows(&program, &["--cohort", "young"]),
        [row(10, "view", 3, 26.0)]
    );
    assert_eq!(
        rows(&program, &["--community", "film"]),
        [row(10, "view", 2, 10.0)]
    );
    assert_eq!(program.json(&["status", "1"])["status"], "active");
    let history = program.json(&["history", "1"]);
    assert_eq!(history["transitions"].as_array().unwrap().len(), 3);
}

#[test]
fn several_inputs_are_one_stream_and_a_summary_counts_only_its_own() {
    let program = Program::new();
    let lines: Vec<&str> = STORY.lines().collect();
    program.write("first.jsonl", lines[..4].join("\n"));
    program.write("second.txt", lines[4..7].join("\n"));
    program.write("third.ndjson", lines[7..].join("\n"));
    let files = ["first.jsonl", "second.txt", "third.ndjson"];
    let summary = program.json(&[&["ingest", "--format", "jsonl"], &files[..]].concat());
    assert_eq!(summary["signals"], 5);
    assert_eq!(summary["gated_community_forwarding"], 1);
    assert_eq!(
        rows(&program, &["--community", "film"]),
        [row(10, "view", 2, 10.0)]
    );

    let run = program.run_with_input(
        &["--json", "ingest", "-"],
        "{\"type\":\"leave\",\"user_id\":1}",
    );
    let summary = run.object();
    assert_eq!(
        (&summary["signals"], &summary["leaves"]),
        (&0.into(), &1.into())
    );
    assert_eq!(program.json(&["status", "1"])["status"], "left");
}

#[test]
fn a_summary_as_text_says_the_same() {
    let program = Program::new();
    program.write("story.jsonl", STORY);
    let text = program.text(&["ingest", "story.jsonl"]);
    let last = |line: &str| line.rsplit_once(' ').unwrap().1.to_owned();
    let numbers: Vec<String> = text.lines().map(last).collect();
    assert_eq!(numbers[..8], ["5", "2", "1", "0", "0", "2", "1", "1"]);
    assert!(text.starts_with("signals "), "{text}");
}

#[test]
fn ids_are_numbers_or_decimal_text_exactly() {
    let program = Program::new();
    let ids = [
        "0",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
    ];
    let events = ids.map(|id| {
        format!(
            r#"{{"user_id":{id},"item_id":"{id}","kind":"view"}}
{{"user_id":"{id}","item_id":{id},"kind":"view"}}
{{"type":"leave","user_id":"{id}"}}
"#
        )
    });
    program.write("ids.jsonl", events.concat());
    program.text(&["ingest", "ids.jsonl"]);

    let expected: Vec<_> = ids
        .iter()
        .map(|id| row(id.parse().unwrap(), "view", 2, 2.0))
        .collect();
    assert_eq!(rows(&program, &[]), expected);
    assert_eq!(program.json(&["stats"])["left_users"], ids.len());
    for id in ids {
        assert_eq!(program.json(&["status", id])["status"], "left", "{id}");
    }
}

#[test]
fn a_weight_is_1_if_absent_and_summed_to_the_millionth() {
    let program = Program::new();
    let weights = [&["0.1"; 10][..], &["-1e9"; 2], &["1e9"; 2]].concat();
    let weighted = weights
        .iter()
        .map(|weight| format!(r#"{{"user_id":1,"item_id":2,"kind":"view","weight":{weight}}}"#));
    let plain = r#"{"user_id":1,"item_id":1,"kind":"view"}"#.to_owned();
    let events: Vec<String> = std::iter::once(plain).chain(weighted).collect();
    program.write("weights.jsonl", events.join("\n"));
    program.text(&["ingest", "weights.jsonl"]);
    assert_eq!(
        rows(&program, &[]),
        [row(1, "view", 1, 1.0), row(2, "view", 14, 1.0)]
    );
}

#[test]
fn byte_order_marks_line_ends_blank_lines_and_escapes_are_no_obstacle() {
    let program = Program::new();
    let kind = "k".repeat(64);
    let events = format!(
        "\u{feff}{{\"user_id\":1,\"item_id\":1,\"kind\":\"a\\n\\u00e9\"}}\r\n\
         \r\n   \n\n\
         \t {{ \"weight\" : 2.5, \"kind\":\"{kind}\", \"item_id\":2, \"unknown\":[{{}}], \"user_id\":1 }} \r\n\
         {{\"user_id\":1,\"item_id\":3,\"kind\":\"last\"}}"
    );
    program.write("odd.jsonl", events);
    assert_eq!(program.json(&["ingest", "odd.jsonl"])["signals"], 3);
    assert_eq!(
        rows(&program, &[]),
        [
            row(2, &kind, 1, 2.5),
            row(1, "a\né", 1, 1.0),
            row(3, "last", 1, 1.0)
        ]
    );

    program.write("empty.jsonl", "");
    program.write("blank.jsonl", "\u{feff}\r\n\n");
    let summary = program.json(&["ingest", "empty.jsonl", "blank.jsonl"]);
    assert_eq!(
        (&summary["signals"], &summary["rejected"]),
        (&0.into(), &0.into())
    );
}
