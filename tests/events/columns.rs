//! CSV, TSV and RecBole's atomic files.

use crate::support::program::Program;

use super::{row, rows};

#[test]
fn csv_under_the_usual_names_in_any_order() {
    let program = Program::new();
    program.write(
        "signals.csv",
        "kind,note,weight,item_id,user_id\nview,x,2.5,18446744073709551615,1\nlike,,-1, 7 ,2\n",
    );
    assert_eq!(program.json(&["ingest", "signals.csv"])["signals"], 2);
    assert_eq!(
        rows(&program, &[]),
        [row(u64::MAX, "view", 1, 2.5), row(7, "like", 1, -1.0)]
    );
}

#[test]
fn csv_under_names_of_ones_own() {
    let program = Program::new();
    program.text(&["leave", "9007199254740993"]);
    program.write(
        "signals.csv",
        "who,what,how,score,weight\n9007199254740993,7,view,3,100\n",
    );
    let summary = program.json(&[
        "ingest",
        "signals.csv",
        "--user-column",
        "who",
        "--item-column",
        "what",
        "--kind-column",
        "how",
        "--weight-column",
        "score",
    ]);
    assert_eq!(summary["gated_cohort_attribution"], 1);
    assert_eq!(rows(&program, &[]), [row(7, "view", 1, 3.0)]);
}

#[test]
fn a_fixed_kind_and_no_weight() {
    let program = Program::new();
    program.write(
        "signals.tsv",
        "user_id\titem_id\tkind\n1\t7\tview\n1\t7\tlike",
    );
    program.text(&["ingest", "signals.tsv", "--kind", "seen"]);
    assert_eq!(rows(&program, &[]), [row(7, "seen", 2, 2.0)]);
    program.text(&["ingest", "signals.tsv"]);
    assert_eq!(
        rows(&program, &[]),
        [
            row(7, "seen", 2, 2.0),
            row(7, "like", 1, 1.0),
            row(7, "view", 1, 1.0)
        ]
    );
}

#[test]
fn standard_input_has_the_format_that_the_command_line_says() {
    let program = Program::new();
    let arguments = ["ingest", "-", "--format", "csv", "--kind", "view"];
    program
        .run_with_input(&arguments, "user_id,item_id\r\n1,7\r\n")
        .success();
    assert_eq!(rows(&program, &[]), [row(7, "view", 1, 1.0)]);
}

#[test]
fn quoted_newlines_separators_and_quotes_are_part_of_a_field() {
    let program = Program::new();
    for (extension, separator) in [("csv", ","), ("tsv", "\t")] {
        for line_end in ["\n", "\r\n"] {
            let records = [
                ["user_id", "item_id", "kind"].join(separator),
                ["1", "\"1\"", "\"two\nlines\""].join(separator),
                ["1", "1", &format!("\"a{separator}b\"")].join(separator),
                String::new(),
                ["1", "1", "\"say \"\"hi\"\"\""].join(separator),
                ["\"1\"", "1", "last"].join(separator),
            ];
            let file = format!("quoted.{extension}");
            program.write(&file, "\u{feff}".to_owned() + &records.join(line_end));
            assert_eq!(program.json(&["ingest", &file])["signals"], 4);
        }
    }
    let mut kinds: Vec<_> = rows(&program, &[])
        .into_iter()
        .map(|(_, kind, count, _)| (kind, count))
        .collect();
    kinds.sort();
    let expected = [
        ("a\tb", 2),
        ("a,b", 2),
        ("last", 4),
        ("say \"hi\"", 4),
        ("two\nlines", 4),
    ];
    assert_eq!(
        kinds,
        expected.map(|(kind, count)| (kind.to_owned(), count))
    );
}

#[test]
fn recbole_interactions_weigh_what_the_rating_says() {
    let program = Program::new();
    let lines = [
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\thow:token",
        "196\t242\t3\t881250949\ta \"quoted\" kind",
        "186\t242\t4.5\t891717742\tview",
        "22\t377\t1\t878887116\tview",
    ];
    for line_end in ["\n", "\r\n"] {
        program.write("ml.inter", lines.join(line_end));
        assert_eq!(
            program.json(&["ingest", "ml.inter", "--kind", "rating"])["signals"],
            3
        );
    }
    assert_eq!(
        rows(&program, &[]),
        [row(242, "rating", 4, 15.0), row(377, "rating", 2, 2.0)]
    );

    program.write("ml.txt", lines.join("\n"));
    program.text(&[
        "ingest",
        "ml.txt",
        "--format",
        "recbole",
        "--kind-column",
        "how",
        "--weight-column",
        "timestamp",
    ]);
    assert_eq!(
        rows(&program, &["--kind", "view"])[0],
        row(242, "view", 1, 891_717_742.0)
    );
    assert_eq!(
        rows(&program, &["--kind", "a \"quoted\" kind"]),
        [row(242, "a \"quoted\" kind", 1, 881_250_949.0)]
    );
}

#[test]
fn recbole_interactions_without_a_rating_weigh_1() {
    let program = Program::new();
    program.write("plain.inter", "user_id:token\titem_id:token\n1\t7\n");
    program.text(&["ingest", "plain.inter", "--kind", "view"]);
    assert_eq!(rows(&program, &[]), [row(7, "view", 1, 1.0)]);
}

#[test]
fn files_of_different_formats_go_in_together() {
    let program = Program::new();
    program.write("a.jsonl", "{\"type\":\"leave\",\"user_id\":1}\n");
    program.write("b.csv", "user_id,item_id\n1,7\n");
    program.write(
        "c.inter",
        "user_id:token\titem_id:token\trating:float\n1\t7\t4\n",
    );
    let summary = program.json(&["ingest", "a.jsonl", "b.csv", "c.inter", "--kind", "view"]);
    assert_eq!(summary["gated_community_forwarding"], 2);
    assert_eq!(rows(&program, &[]), [row(7, "view", 2, 5.0)]);
}

#[test]
fn a_header_that_names_a_column_twice_is_refused() {
    let program = Program::new();
    program.write("twice.csv", "user_id,item_id,kind,item_id\n1,2,view,3\n");
    let run = program.run(&["ingest", "twice.csv"]);
    assert!(
        run.stderr.contains("two columns are named `item_id`"),
        "{}",
        run.stderr
    );
    run.refuses_its_usage();
}
