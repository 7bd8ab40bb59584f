//! `signal`, `top`, `cohort`, `community`.

use serde_json::json;

use crate::support::program::Program;

/// User 42 is in two cohorts and a community, user 43 in one cohort.
fn program() -> Program {
    let program = Program::new();
    program.write(
        "users.jsonl",
        r#"{"user_id":42,"attributes":{"age":20,"occupation":"student"}}
{"user_id":43,"attributes":{"age":40,"occupation":"student"}}"#,
    );
    program.text(&["profiles", "users.jsonl"]);
    program.text(&["cohort", "define", "young", "age < 25"]);
    program.text(&["cohort", "define", "students", "occupation == 'student'"]);
    program.text(&["community", "join", "42", "film"]);
    program
}

fn signal(program: &Program, user: &str, item: &str, kind: &str, weight: &str) {
    program.text(&[
        "signal", user, "--item", item, "--kind", kind, "--weight", weight,
    ]);
}

#[test]
fn signal_prints_its_receipt() {
    let program = program();
    let signal = ["--json", "signal", "42", "--item", "50", "--kind", "view"];
    assert_eq!(
        program.text(&signal),
        "{\"cohorts\":2,\"communities\":1,\"gated\":false}\n"
    );
    program.text(&["leave", "42"]);
    assert_eq!(
        program.text(&signal),
        "{\"cohorts\":0,\"communities\":0,\"gated\":true}\n"
    );
    program.text(&["rejoin", "42"]);
    assert_eq!(
        program.text(&signal),
        "{\"cohorts\":2,\"communities\":1,\"gated\":false}\n"
    );

    let stranger = ["--json", "signal", "7", "--item", "50", "--kind", "view"];
    assert_eq!(
        program.text(&stranger),
        "{\"cohorts\":0,\"communities\":0,\"gated\":false}\n"
    );
    program.text(&["leave", "7"]);
    assert_eq!(
        program.text(&stranger),
        "{\"cohorts\":0,\"communities\":0,\"gated\":true}\n"
    );

    let text = program.text(&["signal", "42", "--item", "50", "--kind", "view"]);
    assert!(
        text.contains("2 cohorts") && text.contains("1 community"),
        "{text}"
    );
    assert!(!text.contains("held back"), "{text}");
    let text = program.text(&["signal", "7", "--item", "50", "--kind", "view"]);
    assert!(text.contains("held back"), "{text}");
}

#[test]
fn signals_out_of_bounds_are_refused_and_have_no_effect() {
    let program = program();
    let long = "k".repeat(65);
    let refused = [
        ("view", "nan", "weight"),
        ("view", "inf", "weight"),
        ("view", "1e400", "weight"),
        ("view", "1000000000.1", "weight"),
        ("view", "-1e10", "weight"),
        ("", "1", "kind"),
        (&long, "1", "65"),
    ];
    for (kind, weight, reason) in refused {
        program
            .run(&[
                "signal", "42", "--item", "1", "--kind", kind, "--weight", weight,
            ])
            .fails_saying(&["signal", reason]);
    }
    assert_eq!(program.json(&["stats"])["signals"], 0);

    signal(&program, "42", "1", &"k".repeat(64), "1e9");
    signal(&program, "42", "1", &"k".repeat(64), "-1e9");
    assert_eq!(program.json(&["stats"])["signals"], 2);
}

#[test]
fn top_ranks_by_weight_and_then_by_item() {
    let program = program();
    signal(&program, "42", "50", "rating", "4.5");
    signal(&program, "42", "50", "rating", "0.25");
    signal(&program, "42", "9", "rating", "3");
    signal(&program, "43", "10", "view", "3");
    signal(&program, "43", "18446744073709551615", "view", "-0.5");
    signal(&program, "7", "9", "rating", "1");
    program.text(&["leave", "42"]);
    signal(&program, "42", "50", "rating", "100");

    let top = |arguments: &[&str]| program.text(&[&["--json", "top"], arguments].concat());
    assert_eq!(
        top(&[]),
        concat!(
            r#"{"scope":"base","rows":[{"item_id":50,"kind":"rating","count":3,"weight":104.75},"#,
            r#"{"item_id":9,"kind":"rating","count":2,"weight":4.0},"#,
            r#"{"item_id":10,"kind":"view","count":1,"weight":3.0},"#,
            r#"{"item_id":18446744073709551615,"kind":"view","count":1,"weight":-0.5}]}"#,
            "\n"
        )
    );
    assert_eq!(
        top(&["--cohort", "young"]),
        concat!(
            r#"{"scope":"cohort:young","rows":[{"item_id":50,"kind":"rating","count":2,"weight":4.75},"#,
            r#"{"item_id":9,"kind":"rating","count":1,"weight":3.0}]}"#,
            "\n"
        )
    );
    assert_eq!(
        top(&["--cohort", "students", "--limit", "3"]),
        concat!(
            r#"{"scope":"cohort:students","rows":[{"item_id":50,"kind":"rating","count":2,"weight":4.75},"#,
            r#"{"item_id":9,"kind":"rating","count":1,"weight":3.0},"#,
            r#"{"item_id":10,"kind":"view","count":1,"weight":3.0}]}"#,
            "\n"
        )
    );
    assert_eq!(
        top(&["--community", "film", "--limit", "1"]),
        concat!(
            r#"{"scope":"community:film","rows":[{"item_id":50,"kind":"rating","count":2,"weight":4.75}]}"#,
            "\n"
        )
    );
    assert_eq!(
        top(&["--kind", "view", "--limit", "1"]),
        concat!(
            r#"{"scope":"base","rows":[{"item_id":10,"kind":"view","count":1,"weight":3.0}]}"#,
            "\n"
        )
    );
    assert_eq!(top(&["--limit", "0"]), "{\"scope\":\"base\",\"rows\":[]}\n");
    assert_eq!(
        top(&["--kind", "never"]),
        "{\"scope\":\"base\",\"rows\":[]}\n"
    );
}

#[test]
fn top_as_text_is_a_table() {
    let program = program();
    signal(&program, "42", "50", "rating", "4.5");
    signal(&program, "42", "7", "view", "1");
    let text = program.text(&["top", "--community", "film"]);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["community:film"]);
    assert_eq!(
        rows[2..],
        [["50", "rating", "1", "4.5"], ["7", "view", "1", "1"]]
    );
}

#[test]
fn a_kind_cannot_drive_the_terminal() {
    let program = program();
    signal(&program, "42", "1", "\u{1b}[31mred\n", "1");
    let text = program.text(&["top"]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert_eq!(text.lines().count(), 3, "{text:?}");
    assert_eq!(program.json(&["top"])["rows"][0]["kind"], "\u{1b}[31mred\n");
}

#[test]
fn cohorts_are_defined_redefined_and_listed() {
    let program = Program::with_store();
    assert_eq!(program.text(&["cohort", "list"]), "no cohorts\n");
    assert_eq!(program.json(&["cohort", "list"]), json!({"cohorts": []}));
    assert_eq!(
        program.json(&["cohort", "define", "young", "int(age) < 25"]),
        json!({"name": "young", "predicate": "int(age) < 25"})
    );
    program.text(&["cohort", "define", "all", "true"]);
    program.text(&["cohort", "define", "young", "int(age) < 30"]);
    assert_eq!(
        program.json(&["cohort", "list"]),
        json!({"cohorts": [
            {"name": "all", "predicate": "true"},
            {"name": "young", "predicate": "int(age) < 30"},
        ]})
    );
    assert_eq!(
        program.text(&["cohort", "list"]),
        "all: true\nyoung: int(age) < 30\n"
    );
}

#[test]
fn a_predicate_that_is_not_valid_is_refused() {
    let program = Program::new();
    let long = format!("{}1 == 1", "1 + ".repeat(2000));
    for predicate in [
        "",
        "int(age <",
        "age < < 25",
        "'open",
        "a ? b",
        "\n\n",
        &long,
    ] {
        program
            .run(&["cohort", "define", "young", predicate])
            .fails_saying(&["predicate", "`young`"]);
    }
    program
        .run(&["cohort", "define", "", "true"])
        .fails_saying(&["cohort name"]);
    assert_eq!(program.json(&["cohort", "list"]), json!({"cohorts": []}));
}

#[test]
fn users_join_and_quit_communities() {
    let program = Program::with_store();
    assert_eq!(program.text(&["community", "list"]), "no communities\n");
    assert_eq!(
        program.json(&["community", "join", "42", "film"]),
        json!({"user_id": 42, "community": "film", "joined": true})
    );
    assert_eq!(
        program.text(&["community", "join", "42", "books"]),
        "user 42 joined books\n"
    );
    assert_eq!(
        program.json(&["community", "list"]),
        json!({"communities": ["books", "film"]})
    );
    assert_eq!(program.text(&["community", "list"]), "books\nfilm\n");

    let signal = ["signal", "42", "--item", "1", "--kind", "view"];
    assert_eq!(program.json(&signal)["communities"], 2);
    assert_eq!(
        program.json(&["community", "quit", "42", "film"]),
        json!({"user_id": 42, "community": "film", "joined": false})
    );
    let receipt = program.json(&signal);
    assert_eq!(
        (&receipt["communities"], &receipt["gated"]),
        (&json!(1), &json!(false))
    );
    let rows = |name| program.json(&["top", "--community", name])["rows"][0]["count"].clone();
    assert_eq!((rows("books"), rows("film")), (json!(2), json!(1)));
}

#[test]
fn a_scope_that_does_not_exist_is_named() {
    let program = program();
    program
        .run(&["top", "--cohort", "film"])
        .fails_saying(&["cohort", "`film`"]);
    program
        .run(&["top", "--community", "young"])
        .fails_saying(&["community", "`young`"]);
    program
        .run(&["community", "quit", "42", "books"])
        .fails_saying(&["community", "`books`"]);
    program
        .run(&["community", "join", "42", ""])
        .fails_saying(&["community name"]);
}
