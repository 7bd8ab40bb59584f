//! Errors: one line, exit status 1 for a failure and 2 for wrong usage.

use tidegate::TidalDb;

use crate::support::program::{Program, Run};

#[test]
fn a_store_in_use_is_left_alone() {
    let program = Program::new();
    program.write("events.jsonl", "{\"type\":\"leave\",\"user_id\":42}\n");
    let db = TidalDb::open(program.path("store")).unwrap();
    let commands: [&[&str]; 9] = [
        &["leave", "42"],
        &["rejoin", "42"],
        &["status", "42"],
        &["signal", "42", "--item", "1", "--kind", "view"],
        &["ingest", "events.jsonl"],
        &["cohort", "list"],
        &["top"],
        &["stats"],
        &["verify"],
    ];
    for command in commands {
        program
            .run(command)
            .fails_saying(&["`store`", "in use by another process"]);
    }
    assert_eq!(db.stats(), tidegate::Stats::default());
}

#[test]
fn a_missing_file_is_named() {
    let program = Program::new();
    let commands: [&[&str]; 5] = [
        &["ingest", "missing.jsonl"],
        &["ingest", "there.jsonl", "missing.jsonl"],
        &["profiles", "missing.jsonl"],
        &["leave", "1", "--from", "missing.jsonl"],
        &[
            "ingest",
            "there.jsonl",
            "--on-error",
            "skip",
            "--rejects",
            "missing.jsonl/rejects",
        ],
    ];
    program.write("there.jsonl", "{\"type\":\"leave\",\"user_id\":1}\n");
    for command in commands {
        program
            .run(command)
            .fails_saying(&["missing.jsonl", "No such file", "check the path"]);
    }
    assert_eq!(program.json(&["stats"])["leaves"], 0);
}

#[test]
fn a_store_that_is_a_file_is_named() {
    let program = Program::new();
    program.write("file", "");
    program
        .run(&["--store", "file", "stats"])
        .fails_saying(&["`file`"]);
    program
        .run(&["--store", "file/store", "stats"])
        .fails_saying(&["`file/store`"]);
}

#[test]
fn wrong_usage_is_refused_before_anything_is_done() {
    let program = Program::new();
    program.write("signals.csv", "user_id,item_id\n1,2\n");
    program.write("signals.txt", "user_id,item_id\n1,2\n");
    program.write("signals.inter", "user_id:token\titem_id:number\n1\t2\n");
    program.write("empty.csv", "");
    let commands: [&[&str]; 30] = [
        &[],
        &["dance"],
        &["--nonsense", "stats"],
        &["leave"],
        &["rejoin"],
        &["status"],
        &["history"],
        &["history", "1", "2"],
        &["leave", "-1"],
        &["leave", "1.5"],
        &["leave", "abc"],
        &["leave", "18446744073709551616"],
        &["status", "--", "-1"],
        &["signal", "1", "--item", "2"],
        &["signal", "1", "--kind", "view"],
        &["signal", "1", "--item", "-2", "--kind", "view"],
        &[
            "signal", "1", "--item", "2", "--kind", "view", "--weight", "heavy",
        ],
        &["top", "--cohort", "a", "--community", "b"],
        &["top", "--limit", "-1"],
        &["cohort", "define", "young"],
        &["community", "join", "film", "1"],
        &["ingest"],
        &["ingest", "signals.txt"],
        &["ingest", "signals.csv"],
        &["ingest", "signals.csv", "--format", "xml"],
        &[
            "ingest",
            "signals.csv",
            "--kind",
            "view",
            "--kind-column",
            "kind",
        ],
        &[
            "ingest",
            "signals.csv",
            "--kind",
            "view",
            "--user-column",
            "who",
        ],
        &[
            "ingest",
            "signals.csv",
            "--kind",
            "view",
            "--rejects",
            "rejects",
        ],
        &["ingest", "signals.inter", "--kind", "view"],
        &["ingest", "empty.csv", "--kind", "view"],
    ];
    for command in commands {
        program.run(command).refuses_its_usage();
    }
    let stats = program.json(&["stats"]);
    assert_eq!(
        (&stats["signals"], &stats["leaves"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn rejects_do_not_overwrite_an_input() {
    let program = Program::new();
    let events = "{\"type\":\"leave\",\"user_id\":1}\n";
    program.write("events.jsonl", events);
    program
        .run(&[
            "ingest",
            "events.jsonl",
            "--on-error",
            "skip",
            "--rejects",
            "./events.jsonl",
        ])
        .refuses_its_usage();
    assert_eq!(
        std::fs::read_to_string(program.path("events.jsonl")).unwrap(),
        events
    );
}

/// Runs the program with the reading end of its standard output closed.
fn unread(program: &Program, arguments: &[&str]) -> Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Run::of(program.command(arguments).stdout(writer))
}

#[test]
fn a_closed_standard_output_is_no_failure_and_stops_nothing() {
    let program = Program::new();
    let commands: [&[&str]; 6] = [
        &["leave", "1", "2", "3"],
        &["--json", "rejoin", "2"],
        &["top"],
        &["demo"],
        &["component", "inspect"],
        &["--help"],
    ];
    for command in commands {
        let run = unread(&program, command);
        assert_eq!(
            (run.status, run.stderr.as_str()),
            (Some(0), ""),
            "{command:?}"
        );
    }
    let stats = program.json(&["stats"]);
    assert_eq!(
        (&stats["leaves"], &stats["rejoins"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn a_failure_is_one_even_if_nobody_reads() {
    let program = Program::new();
    program.text(&["leave", "1"]);
    program.put_records(&[(&[0, 0, 0, 0, 0, 0, 0, 7, 0x11], b"short")]);
    assert_eq!(unread(&program, &["verify"]).status, Some(1));

    for (arguments, status) in [
        (&["verify"][..], 1),
        (&["top", "--cohort", "none"], 1),
        (&["dance"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = Run::of(program.command(arguments).stderr(writer));
        assert_eq!(run.status, Some(status), "{arguments:?}");
    }
}

/// Of a store that is not there `status` would say that everybody is active.
#[test]
fn what_only_reads_makes_no_store() {
    let program = Program::new();
    let reading: [&[&str]; 9] = [
        &["status", "42"],
        &["history", "42"],
        &["stats"],
        &["top"],
        &["verify"],
        &["backup", "file"],
        &["export", "--memberships"],
        &["cohort", "list"],
        &["community", "list"],
    ];
    for arguments in reading {
        program
            .run(arguments)
            .fails_saying(&["no store", "`store`", "check the path"]);
    }
    assert!(!program.path("store").exists());
    assert!(!program.path("file").exists());
}
