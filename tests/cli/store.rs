//! `stats`, `verify`, and where the store is.

use serde_json::json;

use crate::support::program::{Program, Run};

#[test]
fn stats_are_totals_since_the_store_was_made() {
    let program = Program::with_store();
    let zeros = concat!(
        r#"{"signals":0,"leaves":0,"rejoins":0,"rejected":0,"cohort_contributions":0,"#,
        r#""community_contributions":0,"gated_cohort_attribution":0,"#,
        r#""gated_community_forwarding":0,"left_users":0,"malformed_records":0}"#,
        "\n"
    );
    assert_eq!(program.text(&["--json", "stats"]), zeros);

    program.text(&["cohort", "define", "all", "true"]);
    program.text(&["cohort", "define", "none", "false"]);
    program.write(
        "events.jsonl",
        r#"{"type":"profile","user_id":1,"attributes":{}}
{"type":"join","user_id":1,"community":"film"}
{"type":"join","user_id":1,"community":"books"}
{"user_id":1,"item_id":1,"kind":"view"}
{"user_id":2,"item_id":1,"kind":"view"}
{"type":"leave","user_id":1}
{"type":"leave","user_id":3}
{"user_id":1,"item_id":1,"kind":"view"}
{"user_id":3,"item_id":1,"kind":"view"}
not an event
{"type":"rejoin","user_id":1}
{"user_id":1,"item_id":1,"kind":"view"}
"#,
    );
    program.text(&["ingest", "events.jsonl", "--on-error", "skip"]);
    program.text(&["signal", "3", "--item", "1", "--kind", "view"]);
    program.text(&["leave", "4"]);

    // By hand from the lines above: user 1 sends two signals while active, each to
    // one cohort and two communities; three signals come from users who had left.
    let expected = concat!(
        r#"{"signals":6,"leaves":3,"rejoins":1,"rejected":1,"cohort_contributions":2,"#,
        r#""community_contributions":4,"gated_cohort_attribution":3,"#,
        r#""gated_community_forwarding":3,"left_users":2,"malformed_records":0}"#,
        "\n"
    );
    assert_eq!(program.text(&["--json", "stats"]), expected);

    let text = program.text(&["stats"]);
    let numbers: Vec<&str> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1)
        .collect();
    assert_eq!(numbers, ["6", "3", "1", "1", "2", "4", "3", "3", "2", "0"]);
}

#[test]
fn verify_counts_records_and_users_who_left() {
    let program = Program::with_store();
    assert_eq!(
        program.text(&["--json", "verify"]),
        "{\"records\":0,\"left\":0,\"malformed\":[],\"unattributed\":0,\"lost\":0,\"restored\":0,\"disagreeing\":[]}\n"
    );
    program.text(&["leave", "1", "2", "3"]);
    program.text(&["rejoin", "2"]);
    assert_eq!(
        program.text(&["--json", "verify"]),
        "{\"records\":3,\"left\":2,\"malformed\":[],\"unattributed\":0,\"lost\":0,\"restored\":0,\"disagreeing\":[]}\n"
    );
    let text = program.text(&["verify"]);
    assert!(
        text.contains("3 records") && text.contains("0 malformed"),
        "{text}"
    );
}

/// The key of a user's record.
fn key(user_id: u64) -> Vec<u8> {
    [&user_id.to_be_bytes()[..], &[0x11]].concat()
}

/// A store with two good records, five malformed ones and one that names no user.
fn damaged() -> Program {
    let program = Program::new();
    program.text(&["leave", "1", "2"]);
    program.text(&["rejoin", "2"]);
    program.put_records(&[
        (&key(10), &[]),
        (&key(11), &[1, 1, 0, 0, 0, 0, 0, 0]),
        (&key(12), &[1, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        (&key(13), &[2, 1, 0, 0, 0, 0, 0, 0, 0]),
        (&[&key(14)[..], &[0]].concat(), &[0; 9]),
        (&[0, 0, 15], &[0; 9]),
    ]);
    program
}

#[test]
fn verify_names_the_users_whose_records_are_malformed() {
    let program = damaged();
    let run = program.run(&["--json", "verify"]);
    assert_eq!(run.status, Some(1));
    assert_eq!(
        run.stdout,
        "{\"records\":8,\"left\":1,\"malformed\":[10,11,12,13,14],\"unattributed\":1,\"lost\":0,\"restored\":0,\"disagreeing\":[]}\n"
    );
    for user_id in 10..=14 {
        assert!(
            run.stderr.contains(&format!("user {user_id} ")),
            "{}",
            run.stderr
        );
    }
    assert!(run.stderr.contains("name no user"), "{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert_eq!(program.run(&["verify"]).status, Some(1));
}

#[test]
fn a_malformed_record_shuts_its_user_out_and_nobody_else() {
    let program = damaged();
    for user_id in ["10", "11", "12", "13", "14"] {
        let run = program.run(&["--json", "signal", user_id, "--item", "1", "--kind", "view"]);
        assert_eq!(run.status, Some(0));
        assert_eq!(
            run.stdout,
            "{\"cohorts\":0,\"communities\":0,\"gated\":true}\n"
        );

        let run = program.run(&["--json", "status", user_id]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""));
        assert!(
            run.stderr.contains(&format!("user {user_id} is malformed")),
            "{}",
            run.stderr
        );
    }
    let run = program.run(&["--json", "signal", "2", "--item", "1", "--kind", "view"]);
    assert_eq!(
        run.stdout,
        "{\"cohorts\":0,\"communities\":0,\"gated\":false}\n"
    );

    let run = program.run(&["--json", "stats"]);
    let stats: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.status, Some(0));
    assert_eq!(
        (&stats["left_users"], &stats["malformed_records"]),
        (&json!(1), &json!(6))
    );
}

#[test]
fn a_user_whose_record_is_malformed_does_not_keep_others_from_their_turn() {
    let program = damaged();
    let run = program.run(&["--json", "status", "2", "10", "20"]);
    assert_eq!(run.status, Some(1));
    assert_eq!(run.stdout.lines().count(), 2);
    assert!(run.stdout.contains("\"user_id\":20"), "{}", run.stdout);
}

#[test]
fn a_leave_or_a_rejoin_repairs_a_malformed_record() {
    let program = damaged();
    assert_eq!(program.run(&["leave", "10", "12", "14"]).status, Some(0));
    assert_eq!(program.run(&["rejoin", "11", "13"]).status, Some(0));

    let run = program.run(&["--json", "verify"]);
    assert_eq!(
        run.stdout,
        "{\"records\":8,\"left\":4,\"malformed\":[],\"unattributed\":1,\"lost\":0,\"restored\":0,\"disagreeing\":[]}\n"
    );
    // The record that names no user is still there.
    assert_eq!(run.status, Some(1));
    for (user_id, gated) in [
        ("10", true),
        ("11", false),
        ("12", true),
        ("13", false),
        ("14", true),
    ] {
        let run = program.run(&["--json", "signal", user_id, "--item", "1", "--kind", "view"]);
        assert!(
            run.stdout.contains(&format!("\"gated\":{gated}")),
            "{user_id}: {}",
            run.stdout
        );
    }
}

#[test]
fn the_store_is_where_the_option_the_environment_or_the_default_says() {
    let program = Program::new();
    let leave = |arguments: &[&str], environment: Option<&str>| {
        let mut command = program.command(arguments);
        match environment {
            Some(folder) => command.env("TIDEGATE_STORE", folder),
            None => command.env_remove("TIDEGATE_STORE"),
        };
        Run::of(&mut command).success();
    };
    leave(&["leave", "1"], None);
    leave(&["leave", "2"], Some("from/environment"));
    leave(
        &["--store", "from-option", "leave", "3"],
        Some("from/environment"),
    );
    let absolute = program.path("absolute");
    leave(&["leave", "4", "--store", absolute.to_str().unwrap()], None);

    for (folder, user_id) in [
        ("tidegate-data", "1"),
        ("from/environment", "2"),
        ("from-option", "3"),
        ("absolute", "4"),
    ] {
        let leaves = &program.json(&["--store", folder, "stats"])["leaves"];
        assert_eq!(*leaves, 1, "{folder}");
        let standing = program.json(&["--store", folder, "status", user_id]);
        assert_eq!(standing["status"], "left", "{folder}");
    }
    assert!(!program.path("store").exists());
}

/// The journal is not in a backup, and its absence from one is no damage.
#[test]
fn a_store_is_made_from_a_backup_without_a_warning() {
    let program = Program::with_store();
    program.text(&["leave", "1", "2"]);
    program.text(&["rejoin", "2"]);
    program.text(&["backup", "file"]);
    program.text(&["--store", "restored", "restore", "file"]);
    for user_id in ["1", "2"] {
        let restored = program.text(&["--store", "restored", "history", user_id]);
        assert_eq!(restored, program.text(&["history", user_id]));
    }
}
