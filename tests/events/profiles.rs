//! `profiles`, and what cohorts make of attributes.

use crate::support::program::Program;

/// The number of cohorts that gain a signal of this user.
fn cohorts(program: &Program, user_id: &str) -> u64 {
    let receipt = program.json(&["signal", user_id, "--item", "1", "--kind", "view"]);
    receipt["cohorts"].as_u64().unwrap()
}

/// Checks which of `predicates` the profile of user 1 meets.
fn meets(program: &Program, predicates: &[(&str, bool)]) {
    for (predicate, met) in predicates {
        program.text(&["cohort", "define", "c", predicate]);
        assert_eq!(cohorts(program, "1"), u64::from(*met), "{predicate}");
    }
}

#[test]
fn jsonl_profiles_keep_the_types_of_their_attributes() {
    let program = Program::new();
    program.write(
        "users.jsonl",
        "\u{feff}{\"user_id\":\"1\",\"attributes\":{\"age\":24,\"score\":0.5,\"name\":\"Ada\",\"tags\":[\"a\"]}}\r\n\
         \r\n{\"type\":\"profile\",\"user_id\":2,\"attributes\":{}}",
    );
    let summary = program.json(&["profiles", "users.jsonl"]);
    assert_eq!(
        (&summary["profiles"], &summary["rejected"]),
        (&2.into(), &0.into())
    );
    meets(
        &program,
        &[
            ("age < 25", true),
            ("age == '24'", false),
            ("score == 0.5 && name.startsWith('A')", true),
            ("'a' in tags", true),
            ("missing == 1", false),
            ("age", false),
        ],
    );
    assert_eq!(cohorts(&program, "2"), 0);
}

#[test]
fn csv_profiles_are_text() {
    let program = Program::new();
    program.write("users.csv", "age,who,job\n24,1,\"writer,\npoet\"\n");
    let text = program.text(&["profiles", "users.csv", "--user-column", "who"]);
    assert!(text.starts_with("1 profile,"), "{text}");
    meets(
        &program,
        &[
            ("age == '24'", true),
            ("age == 24", false),
            ("int(age) == 24", true),
            ("job == 'writer,\\npoet'", true),
            // The user's id is no attribute.
            ("who == '1'", false),
        ],
    );
}

#[test]
fn recbole_profiles_follow_the_types_of_the_header() {
    let program = Program::new();
    program.write(
        "ml.user",
        "user_id:token\tage:token\tscore:float\ttags:token_seq\tmarks:float_seq\tempty:float\r\n\
         1\t24\t4\ta b\t1 2.5\t\r\n",
    );
    assert_eq!(program.json(&["profiles", "ml.user"])["profiles"], 1);
    meets(
        &program,
        &[
            ("age == '24'", true),
            ("age == 24", false),
            ("int(age) < 25", true),
            ("score == 4.0", true),
            ("score > 3.5", true),
            ("score == '4'", false),
            ("'b' in tags && size(tags) == 2", true),
            ("'a b' in tags", false),
            ("marks[1] == 2.5 && size(marks) == 2", true),
            ("empty == null", true),
            ("user_id == '1'", false),
        ],
    );
}

#[test]
fn a_later_profile_replaces_all_of_an_earlier_one() {
    let program = Program::new();
    program.text(&["cohort", "define", "young", "age < 25"]);
    program.text(&["cohort", "define", "students", "job == 'student'"]);
    program.write(
        "users.jsonl",
        "{\"user_id\":1,\"attributes\":{\"age\":20,\"job\":\"student\"}}\n",
    );
    program.text(&["profiles", "users.jsonl"]);
    assert_eq!(cohorts(&program, "1"), 2);
    program.write(
        "users.jsonl",
        "{\"user_id\":1,\"attributes\":{\"age\":21}}\n",
    );
    program.text(&["profiles", "users.jsonl"]);
    assert_eq!(cohorts(&program, "1"), 1);
}

#[test]
fn profiles_stop_at_a_bad_line_and_keep_what_came_before() {
    let program = Program::new();
    program.text(&["cohort", "define", "all", "true"]);
    let good = "{\"user_id\":1,\"attributes\":{}}\n";
    for (bad, reason) in [
        ("{\"user_id\":1}", "`attributes`"),
        ("{\"user_id\":-1,\"attributes\":{}}", "id"),
        ("{\"type\":\"leave\",\"user_id\":1}", "ingest"),
        ("{\"user_id\":1,\"attributes\":\"none\"}", "map"),
    ] {
        program.write("users.jsonl", format!("{good}{bad}\n{good}"));
        program.run(&["profiles", "users.jsonl"]).fails_saying(&[
            "users.jsonl:2: ",
            reason,
            "what came before took effect and is kept: 1 line",
        ]);
    }
    assert_eq!(cohorts(&program, "1"), 1);
    assert_eq!(program.json(&["stats"])["leaves"], 0);

    let header = "user_id:token\tage:float\n";
    for (bad, reason) in [
        ("1\told", "`old`"),
        ("1\tnan", "`nan`"),
        ("x\t1", "`x`"),
        ("1", "1 columns"),
    ] {
        program.write("ml.user", format!("{header}1\t24\n{bad}\n"));
        program.run(&["profiles", "ml.user"]).fails_saying(&[
            "ml.user:3: ",
            reason,
            "what came before took effect and is kept: 1 line",
        ]);
    }
    program.write("users.csv", "age\n24\n");
    program.run(&["profiles", "users.csv"]).refuses_its_usage();
}

#[test]
fn profiles_skip_and_collect_bad_lines() {
    let program = Program::new();
    let huge = format!(
        "{{\"user_id\":1,\"attributes\":{{\"a\":\"{}\"}}}}",
        "x".repeat(70_000)
    );
    program.write(
        "users.jsonl",
        format!("{huge}\n{{\"user_id\":1,\"attributes\":{{}}}}\n"),
    );
    let summary = program.json(&[
        "profiles",
        "users.jsonl",
        "--on-error",
        "skip",
        "--rejects",
        "rejects.jsonl",
    ]);
    assert_eq!(
        (&summary["profiles"], &summary["rejected"]),
        (&1.into(), &1.into())
    );
    let rejects = std::fs::read_to_string(program.path("rejects.jsonl")).unwrap();
    assert!(rejects.contains("\"line\":1") && rejects.contains("8192"));
}
