//! `leave`, `rejoin`, `status`, `history`.

use std::time::UNIX_EPOCH;

use serde_json::Value;

use crate::support::program::Program;

#[test]
fn status_of_users_nobody_heard_of_is_an_object_a_line_with_ids_exactly() {
    let program = Program::with_store();
    let ids = ["0", "9007199254740993", "18446744073709551615"];
    let status = program.text(&[&["--json", "status"], &ids[..]].concat());
    let expected = ids.map(|id| {
        format!(r#"{{"user_id":{id},"status":"active","left_at_ns":null,"left_at":null}}"#) + "\n"
    });
    assert_eq!(status, expected.concat());
}

#[test]
fn leave_and_rejoin_print_the_standing_that_they_led_to() {
    let program = Program::new();
    for id in ["42", "0", "9007199254740993", "18446744073709551615"] {
        let before = now_ns();
        let left = program.text(&["--json", "leave", id]);
        let after = now_ns();
        let (left_at_ns, left_at) = boundary(&left);
        assert!(before <= left_at_ns && left_at_ns <= after);
        assert_eq!(ns_of_rfc3339(&left_at), left_at_ns);
        let standing = |status| {
            format!(
                r#"{{"user_id":{id},"status":"{status}","left_at_ns":{left_at_ns},"left_at":"{left_at}"}}"#
            ) + "\n"
        };
        assert_eq!(left, standing("left"));
        assert_eq!(program.text(&["--json", "status", id]), standing("left"));
        assert_eq!(program.text(&["--json", "rejoin", id]), standing("active"));
        assert_eq!(program.text(&["--json", "status", id]), standing("active"));
    }
}

#[test]
fn an_instant_is_printed_as_rfc_3339_says_it() {
    let program = Program::with_store();
    // Instants whose calendar dates are common knowledge.
    let instants = [
        (1_767_225_600_000_000_000_u64, "2026-01-01T00:00:00Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
        (1_000_000_000_500_000_000, "2001-09-09T01:46:40.5Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
    ];
    for (left_at_ns, left_at) in instants {
        let key = [0, 0, 0, 0, 0, 0, 0, 42, 0x11];
        let record = [&[1][..], &left_at_ns.to_le_bytes()].concat();
        program.put_records(&[(&key, &record)]);
        assert_eq!(
            program.text(&["--json", "status", "42"]),
            format!(
                r#"{{"user_id":42,"status":"left","left_at_ns":{left_at_ns},"left_at":"{left_at}"}}"#
            ) + "\n"
        );
    }
}

#[test]
fn history_lists_every_transition_the_oldest_first() {
    let program = Program::new();
    let (first, _) = boundary(&program.text(&["--json", "leave", "42"]));
    program.text(&["rejoin", "42"]);
    program.text(&["leave", "43"]);
    let (second, _) = boundary(&program.text(&["--json", "leave", "42"]));

    let text = program.text(&["--json", "history", "42"]);
    let history: Value = serde_json::from_str(&text).unwrap();
    let rejoined = history["transitions"][1]["at_ns"].as_u64().unwrap();
    assert!(first < rejoined && rejoined < second);
    assert_eq!(
        text,
        format!(
            r#"{{"user_id":42,"transitions":[{{"to":"left","at_ns":{first}}},{{"to":"active","at_ns":{rejoined}}},{{"to":"left","at_ns":{second}}}]}}"#
        ) + "\n"
    );
    assert_eq!(
        program.text(&["--json", "history", "7"]),
        "{\"user_id\":7,\"transitions\":[]}\n"
    );

    let text = program.text(&["history", "42"]);
    let lines: Vec<(u64, &str)> = text
        .lines()
        .map(|line| line.split_once("  ").unwrap())
        .map(|(at, to)| (ns_of_rfc3339(at), to))
        .collect();
    assert_eq!(
        lines,
        [(first, "left"), (rejoined, "active"), (second, "left")]
    );
}

#[test]
fn text_says_who_stands_where_since_when() {
    let program = Program::with_store();
    assert_eq!(program.text(&["status", "42"]), "user 42: active\n");
    assert_eq!(program.text(&["history", "42"]), "user 42 never left\n");
    let left = program.text(&["leave", "42"]);
    let (_, left_at) = boundary(&program.text(&["--json", "status", "42"]));
    assert_eq!(left, format!("user 42: left since {left_at}\n"));
    assert_eq!(
        program.text(&["rejoin", "42"]),
        format!("user 42: active, last left {left_at}\n")
    );
}

#[test]
fn leave_and_rejoin_take_more_users_from_a_file() {
    let program = Program::new();
    program.write(
        "users",
        "\u{feff}1\r\n\r\n 9007199254740993 \n18446744073709551615",
    );
    let left = program.text(&["--json", "leave", "5", "--from", "users"]);
    let expected = [5, 1, 9_007_199_254_740_993, u64::MAX];
    assert_eq!(standings(&left), expected.map(|id| (id, "left".to_owned())));

    let run = program.run_with_input(&["--json", "rejoin", "--from", "-"], "1\n5\n");
    assert_eq!(
        standings(&run.success()),
        [1, 5].map(|id| (id, "active".to_owned()))
    );
    assert_eq!(program.json(&["stats"])["left_users"], 2);

    program.write("nobody", "");
    assert_eq!(program.text(&["leave", "--from", "nobody"]), "");
    assert_eq!(program.json(&["stats"])["left_users"], 2);
}

#[test]
fn a_bad_id_in_a_file_changes_nothing() {
    let program = Program::with_store();
    for bad in ["-1", "1.5", "18446744073709551616", "abc", "1 2", "0x10"] {
        program.write("users", format!("1\n2\n{bad}\n"));
        program
            .run(&["leave", "3", "--from", "users"])
            .fails_saying(&["users", "3", &format!("`{bad}`")]);
    }
    program.write("users", b"1\n\xff\n");
    program
        .run(&["leave", "--from", "users"])
        .fails_saying(&["users", "UTF-8"]);
    assert_eq!(program.json(&["stats"])["leaves"], 0);
}

/// The users of lines of JSON with their status.
fn standings(lines: &str) -> Vec<(u64, String)> {
    let standing = |line| {
        let standing: Value = serde_json::from_str(line).unwrap();
        let status = standing["status"].as_str().unwrap().to_owned();
        (standing["user_id"].as_u64().unwrap(), status)
    };
    lines.lines().map(standing).collect()
}

fn boundary(standing: &str) -> (u64, String) {
    let standing: Value = serde_json::from_str(standing).unwrap();
    (
        standing["left_at_ns"].as_u64().unwrap(),
        standing["left_at"].as_str().unwrap().to_owned(),
    )
}

/// Nanoseconds since the Unix epoch of `YYYY-MM-DDThh:mm:ss[.fraction]Z`, by counting
/// days.
fn ns_of_rfc3339(text: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| text[range].parse::<u64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = (1970..year)
        .map(|year| if is_leap(year) { 366 } else { 365 })
        .sum::<u64>()
        + months
            .iter()
            .zip(1..month)
            .map(|(days, _)| days)
            .sum::<u64>()
        + day
        - 1;
    let seconds = ((days * 24 + number(11..13)) * 60 + number(14..16)) * 60 + number(17..19);
    let fraction = text[19..]
        .strip_suffix('Z')
        .unwrap()
        .trim_start_matches('.');
    let nanoseconds = format!("{fraction:0<9}").parse::<u64>().unwrap();
    seconds * 1_000_000_000 + nanoseconds
}

fn now_ns() -> u64 {
    u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap()
}
