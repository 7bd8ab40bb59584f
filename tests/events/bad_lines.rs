//! Lines that mean nothing: stopped at, or skipped and collected.

use serde_json::Value;

use crate::support::program::Program;

use super::{row, rows};

/// Lines that are no event, each with what its reason has to mention.
fn bad_events() -> Vec<(Vec<u8>, &'static str)> {
    let signal = |user_id: &str, item_id: &str, kind: &str, weight: &str| {
        format!(r#"{{"user_id":{user_id},"item_id":{item_id},"kind":{kind},"weight":{weight}}}"#)
    };
    let mut bad: Vec<(String, &str)> = Vec::new();
    for text in [
        "[1,2,\"view\"]",
        "42",
        "\"view\"",
        "null",
        "user_id,item_id",
    ] {
        bad.push((text.to_owned(), "object"));
    }
    for text in [
        r#"{"user_id":1"#,
        r#"{"type":"leave","user_id":1} {}"#,
        "{user_id:1}",
    ] {
        bad.push((text.to_owned(), "column"));
    }
    for id in [
        "-1",
        "1.5",
        "1.0",
        "1e3",
        "18446744073709551616",
        "1e400",
        "true",
        "[1]",
        r#""""#,
        r#""x""#,
        r#""-1""#,
        r#""+1""#,
        r#"" 1""#,
        r#""1.0""#,
        r#""18446744073709551616""#,
    ] {
        let reason = if id == "1e400" { "number" } else { "id" };
        bad.push((signal(id, "1", "\"view\"", "1"), reason));
        bad.push((signal("1", id, "\"view\"", "1"), reason));
        bad.push((format!(r#"{{"type":"leave","user_id":{id}}}"#), reason));
    }
    for weight in ["1e400", "-1e400", "null", "true", "\"1\"", "{}"] {
        bad.push((signal("1", "1", "\"view\"", weight), "number"));
    }
    for weight in ["1000000000.1", "-1e10"] {
        bad.push((signal("1", "1", "\"view\"", weight), "weight"));
    }
    for weight in ["NaN", "Infinity", "-Infinity", "nan"] {
        bad.push((signal("1", "1", "\"view\"", weight), "column"));
    }
    bad.push((signal("1", "1", "\"\"", "1"), "kind"));
    bad.push((
        signal("1", "1", &format!("\"{}\"", "k".repeat(65)), "1"),
        "65",
    ));
    bad.push((signal("1", "1", "7", "1"), "expected"));
    for (text, reason) in [
        (r#"{"type":"dance","user_id":1}"#, "`dance`"),
        (r#"{"type":"Leave","user_id":1}"#, "`Leave`"),
        (r#"{"type":"","user_id":1}"#, "``"),
        (r#"{"type":"leave"}"#, "`user_id`"),
        (r#"{"item_id":1,"kind":"view"}"#, "`user_id`"),
        (r#"{"user_id":1,"kind":"view"}"#, "`item_id`"),
        (r#"{"user_id":1,"item_id":1}"#, "`kind`"),
        (r#"{"type":"join","user_id":1}"#, "`community`"),
        (r#"{"type":"quit","user_id":1}"#, "`community`"),
        (
            r#"{"type":"join","user_id":1,"community":""}"#,
            "community name",
        ),
        (
            r#"{"type":"quit","user_id":1,"community":"none"}"#,
            "`none`",
        ),
        (r#"{"type":"profile","user_id":1}"#, "`attributes`"),
        (r#"{"type":"profile","user_id":1,"attributes":[1]}"#, "map"),
    ] {
        bad.push((text.to_owned(), reason));
    }
    let mut bad: Vec<(Vec<u8>, &str)> = bad
        .into_iter()
        .map(|(text, reason)| (text.into_bytes(), reason))
        .collect();
    bad.push((b"\xff\xfe".to_vec(), "UTF-8"));
    bad.push((
        b"{\"user_id\":1,\"item_id\":1,\"kind\":\"caf\xe9\"}".to_vec(),
        "UTF-8",
    ));
    bad
}

/// Records under `user_id,item_id,kind,weight` that are no signal.
fn bad_records() -> Vec<(Vec<u8>, &'static str)> {
    let long_kind = format!("1,1,{},1", "k".repeat(65));
    let mut bad: Vec<(Vec<u8>, &str)> = [
        ("1,1,view", "3 columns"),
        ("1,1,view,1,1", "5 columns"),
        ("1", "1 columns"),
        ("-1,1,view,1", "`-1`"),
        ("1.5,1,view,1", "`1.5`"),
        ("1,18446744073709551616,view,1", "`18446744073709551616`"),
        ("1,x,view,1", "`x`"),
        (",1,view,1", "`user_id`"),
        ("1,1,view,", "`weight`"),
        ("1,1,view,nan", "`nan`"),
        ("1,1,view,inf", "`inf`"),
        ("1,1,view,-Infinity", "`-Infinity`"),
        ("1,1,view,1e400", "`1e400`"),
        ("1,1,view,heavy", "`heavy`"),
        ("1,1,view,1000000000.1", "weight"),
        ("1,1,,1", "kind"),
        (&long_kind, "65"),
    ]
    .map(|(text, reason)| (text.as_bytes().to_vec(), reason))
    .to_vec();
    bad.push((b"1,1,caf\xe9,1".to_vec(), "UTF-8"));
    bad.push((b"\xff,1,view,1".to_vec(), "UTF-8"));
    bad
}

/// Ingests two good lines, a bad one and a good one, for each bad one, and checks
/// that it stops there and keeps what came before.
fn stops_at_each(file: &str, before: &str, bad_lines: &[(Vec<u8>, &str)], line: u64) {
    let after = before.lines().last().unwrap();
    let program = Program::new();
    for (bad, reason) in bad_lines {
        program.write(
            file,
            [before.as_bytes(), bad, b"\n", after.as_bytes()].concat(),
        );
        program.run(&["ingest", file]).fails_saying(&[
            &format!("{file}:{line}: "),
            reason,
            "what came before took effect and is kept: 2 lines",
        ]);
    }
    let count = bad_lines.len() as u64;
    let stats = program.json(&["stats"]);
    assert_eq!(stats["signals"], 2 * count);
    assert_eq!(
        (&stats["rejected"], &stats["leaves"]),
        (&count.into(), &0.into())
    );
    assert_eq!(
        rows(&program, &[]).iter().map(|row| row.2).sum::<u64>(),
        2 * count
    );
}

#[test]
fn ingest_stops_at_a_line_that_is_no_event() {
    let good = r#"{"user_id":1,"item_id":1,"kind":"view"}"#;
    stops_at_each(
        "events.jsonl",
        &format!("{good}\n\n{good}\n"),
        &bad_events(),
        4,
    );
}

#[test]
fn ingest_stops_at_a_record_that_is_no_signal() {
    // The first record takes lines 2 and 3, and a blank one follows.
    let before = "user_id,item_id,kind,weight\n1,1,\"a\nb\",1\n\n1,1,view,1\n";
    stops_at_each("signals.csv", before, &bad_records(), 6);
    stops_at_each("crlf.csv", &before.replace('\n', "\r\n"), &bad_records(), 6);

    let with_tabs = |text: Vec<u8>| {
        text.iter()
            .map(|byte| if *byte == b',' { b'\t' } else { *byte })
            .collect()
    };
    let bad: Vec<_> = bad_records()
        .into_iter()
        .map(|(text, reason)| (with_tabs(text), reason))
        .collect();
    stops_at_each("signals.tsv", &before.replace(',', "\t"), &bad, 6);
}

#[test]
fn what_came_before_in_other_files_is_kept_too_and_what_comes_after_is_not_read() {
    let program = Program::new();
    let good = "{\"type\":\"leave\",\"user_id\":1}\n";
    program.write("a.jsonl", good.repeat(3));
    program.write("b.jsonl", format!("{good}{{}}\n{good}"));
    program.write("c.jsonl", good);
    program
        .run(&["ingest", "a.jsonl", "b.jsonl", "c.jsonl"])
        .fails_saying(&[
            "b.jsonl:2: ",
            "what came before took effect and is kept: 4 lines",
        ]);
    assert_eq!(program.json(&["stats"])["leaves"], 4);

    program.write("header.inter", "user_id:token\titem_id\n1\t2\n");
    program
        .run(&["ingest", "a.jsonl", "header.inter", "--kind", "view"])
        .fails_saying(&[
            "header.inter",
            "`item_id`",
            "what came before took effect and is kept: 3 lines",
        ]);
    assert_eq!(program.json(&["stats"])["leaves"], 7);

    program
        .run_with_input(&["ingest", "-"], format!("{good}oops"))
        .fails_saying(&[
            "standard input:2: ",
            "what came before took effect and is kept: 1 line",
        ]);
}

#[test]
fn a_header_that_does_not_fit_names_what_is_wrong() {
    let program = Program::new();
    for (file, header, part) in [
        ("a.inter", "user_id:token\titem_id:number", "`number`"),
        ("b.inter", "user_id:token\titem_id", "`item_id`"),
        ("c.csv", "user,item_id", "`user_id`"),
        ("d.csv", "user_id;item_id", "`user_id;item_id`"),
        ("e.csv", "user_id,\u{1b}[31m", "`item_id`"),
        ("f.csv", "", "empty"),
    ] {
        program.write(file, format!("{header}\n1\t2\n"));
        if header.is_empty() {
            program.write(file, "");
        }
        let run = program.run(&["ingest", file, "--kind", "view"]);
        assert!(
            run.stderr.contains(part) && run.stderr.contains(file),
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
        run.refuses_its_usage();
    }
}

/// What the file of rejects says: file, line, whether there is a reason, and text.
fn rejects(program: &Program, file: &str) -> Vec<(String, u64, String, String)> {
    let lines = std::fs::read_to_string(program.path(file)).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let reject = |line| {
        let reject: Value = serde_json::from_str(line).unwrap();
        (
            text(&reject["file"]),
            reject["line"].as_u64().unwrap(),
            text(&reject["reason"]),
            text(&reject["text"]),
        )
    };
    lines.lines().map(reject).collect()
}

/// Ingests bad lines between good ones, skipping, and compares the rejects with them.
fn skips_each(file: &str, header: &str, good: &str, bad_lines: &[(Vec<u8>, &str)]) {
    let program = Program::new();
    let mut content = format!("{header}{good}\n").into_bytes();
    for (bad, _) in bad_lines {
        content.extend_from_slice(bad);
        content.extend_from_slice(format!("\n{good}\n").as_bytes());
    }
    program.write(file, content);
    let summary = program.json(&[
        "ingest",
        file,
        "--on-error",
        "skip",
        "--rejects",
        "rejects.jsonl",
    ]);
    let count = bad_lines.len() as u64;
    assert_eq!(summary["signals"], count + 1);
    assert_eq!(summary["rejected"], count);
    assert_eq!(program.json(&["stats"])["rejected"], count);

    let rejects = rejects(&program, "rejects.jsonl");
    assert_eq!(rejects.len(), bad_lines.len());
    let first = header.lines().count() as u64 + 2;
    for (index, (reject, (bad, part))) in rejects.iter().zip(bad_lines).enumerate() {
        let (rejected_file, line, reason, text) = reject;
        assert_eq!(
            (rejected_file.as_str(), *line),
            (file, first + 2 * index as u64)
        );
        assert_eq!(*text, String::from_utf8_lossy(bad));
        assert!(reason.contains(part), "`{part}` is not in: {reason}");
    }
}

#[test]
fn bad_lines_can_be_skipped_and_collected() {
    let good = r#"{"user_id":1,"item_id":1,"kind":"view"}"#;
    skips_each("events.jsonl", "", good, &bad_events());
    skips_each(
        "signals.csv",
        "user_id,item_id,kind,weight\n",
        "1,1,view,1",
        &bad_records(),
    );
}

#[test]
fn bad_lines_can_be_skipped_without_collecting_them() {
    let program = Program::new();
    program.write(
        "events.jsonl",
        "oops\n{\"user_id\":1,\"item_id\":1,\"kind\":\"view\"}\noops",
    );
    let summary = program.json(&["ingest", "events.jsonl", "--on-error", "skip"]);
    assert_eq!(
        (&summary["signals"], &summary["rejected"]),
        (&1.into(), &2.into())
    );
    assert_eq!(rows(&program, &[]), [row(1, "view", 1, 1.0)]);
}

#[test]
fn the_file_of_rejects_is_there_even_if_nothing_was_rejected() {
    let program = Program::new();
    program.write("rejects.jsonl", "from another time");
    program.write("events.jsonl", "{\"type\":\"leave\",\"user_id\":1}\n");
    program.text(&[
        "ingest",
        "events.jsonl",
        "--on-error",
        "skip",
        "--rejects",
        "rejects.jsonl",
    ]);
    assert!(rejects(&program, "rejects.jsonl").is_empty());
}
