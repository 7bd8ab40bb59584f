//! Callers and rules that were built from other languages by `callers/build`: the same
//! session in each, callers that do harm, and two policies in C.

use std::path::PathBuf;

use crate::support::program::Program;
use crate::support::{repository, skip};

const EVERYTHING: &str = "signal,status,leave,rejoin,history";

const SESSION: &str = "\
signal: cohorts 0, communities 1, gated no
status: active, never left
leave: left
signal: cohorts 0, communities 0, gated yes
status: left
rejoin: active
signal: cohorts 0, communities 1, gated no
history: left, active
";

const LANGUAGES: [&str; 4] = ["rust", "python", "javascript", "c"];

/// The first id that a double-precision float can't hold, and the last one there is.
const USERS: [&str; 3] = ["42", "9007199254740993", "18446744073709551615"];

/// Where `callers/build` puts what it builds; `None` if it was not run.
fn built() -> Option<PathBuf> {
    let folder = std::env::var_os("TIDEGATE_CALLERS")
        .map_or_else(|| repository().join("target/callers"), PathBuf::from);
    if folder.join("policy-other-record.wasm").exists() {
        return Some(folder.canonicalize().unwrap());
    }
    skip("the callers are not built", "tests/callers/build");
    None
}

struct Setting {
    folder: PathBuf,
    program: Program,
}

impl Setting {
    /// A store in which the users are in a community.
    fn new() -> Option<Self> {
        let setting = Setting {
            folder: built()?,
            program: Program::new(),
        };
        for user in USERS {
            setting.program.text(&["community", "join", user, "film"]);
        }
        Some(setting)
    }

    fn file(&self, name: &str) -> String {
        let file = self.folder.join(name).with_extension("wasm");
        file.into_os_string().into_string().unwrap()
    }

    fn standing(&self, user: &str) -> String {
        self.program.json(&["status", user])["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

#[test]
fn the_same_session_comes_to_the_same_in_every_language() {
    let Some(setting) = Setting::new() else {
        return;
    };
    for language in LANGUAGES {
        let caller = setting.file(language);
        // Whoever went first has a history already.
        let setting = Setting::new().unwrap();
        for user in USERS {
            let run = ["run", &caller, "--allow", EVERYTHING, "--user", user, user];
            assert_eq!(setting.program.text(&run), SESSION, "{language}");
            let history = setting.program.json(&["history", user]);
            assert_eq!(history["transitions"].as_array().unwrap().len(), 2);
        }
        // Two signals of each user were forwarded, with a weight of 1.5, and all three
        // are in the base ledger.
        let film = &setting.program.json(&["top", "--community", "film"])["rows"][0];
        assert_eq!((&film["count"], &film["weight"]), (&6.into(), &9.0.into()));
        let base = &setting.program.json(&["top"])["rows"][0];
        assert_eq!((&base["count"], &base["weight"]), (&9.into(), &13.5.into()));

        for not_an_id in ["18446744073709551616", "-1", "1e3", ""] {
            setting
                .program
                .run(&["run", &caller, "--allow", EVERYTHING, "--", not_an_id])
                .fails_saying(&[&format!("not a user id: \"{not_an_id}\"")]);
        }
    }
}

#[test]
fn every_language_is_told_what_it_was_not_given() {
    let Some(setting) = Setting::new() else {
        return;
    };
    for language in LANGUAGES {
        let caller = setting.file(language);
        let denied = "access-denied: this caller was not given";
        for (options, what) in [
            (&[][..], "the function `signal`"),
            (&["--allow", "signal,status"], "the function `leave`"),
            (&["--allow", EVERYTHING, "--user", "43"], "user 42"),
        ] {
            let run = [&["run", caller.as_str()], options, &["42"]].concat();
            let said = format!("{denied} {what}");
            setting.program.run(&run).fails_saying(&[&said]);
        }
        assert_eq!(setting.standing("42"), "active", "{language}");
    }
}

#[test]
fn callers_that_do_harm_are_stopped_and_the_store_is_whole() {
    let Some(setting) = Setting::new() else {
        return;
    };
    for (caller, said) in [
        ("bad-trap", "wasm `unreachable` instruction executed"),
        ("bad-loop", "it did not end within 1s"),
        ("bad-sleep", "it did not end within 1s"),
        (
            "bad-memory",
            "it asked for more than 67108864 bytes of memory",
        ),
        (
            "bad-version",
            "@0.2.0`, and this host offers version 0.1.0 of that package",
        ),
        ("bad-foreign", "example:mail/outbox@1.0.0"),
        ("bad-no-run", "it does not export `run"),
        ("bad-wrong-run", "it does not export `run"),
    ] {
        let file = setting.file(caller);
        setting
            .program
            .run(&["run", &file, "--allow", EVERYTHING, "--timeout", "1", "42"])
            .fails_saying(&[&file, said]);
        setting.program.text(&["verify"]);
    }
    // What it did before it trapped stays done.
    assert_eq!(setting.standing("42"), "left");

    let file = setting.file("bad-output");
    let run = setting.program.run(&["run", &file, "42"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stdout.len() <= 1 << 20, "{}", run.stdout.len());
    assert!(run.stdout.len() > 1 << 19, "what was allowed is passed on");
    assert!(
        run.stderr.contains("it wrote more than 1048576 bytes"),
        "{}",
        run.stderr
    );
}

/// It looks for an environment, files, and input, and at the clocks, and writes to both
/// standard streams.
#[test]
fn a_caller_finds_nothing_of_the_machine_and_its_output_is_passed_on() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let caller = setting.file("bad-curious");
    let found = "environment no, root no, folder no, passwords no, input no, \
        clock 1000000 ns, finer no";
    let run = setting.program.run(&["run", &caller]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, format!("said on standard output\n{found}\n"));
    assert_eq!(run.stderr, "said on standard error\n");

    // With --json standard output is for the one object.
    let run = setting.program.run(&["--json", "run", &caller]);
    let object: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(object["outcome"], found);
    let both = "said on standard output\nsaid on standard error\n";
    assert_eq!(run.stderr, both);
}

#[test]
fn rules_from_another_language_take_the_place_of_the_shipped_ones() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let program = &setting.program;
    program.text(&["cohort", "define", "all", "true"]);
    program.write("users.csv", "user_id,age\n42,30\n");
    program.text(&["profiles", "users.csv"]);
    program.text(&["leave", "42"]);
    let signal = ["signal", "42", "--item", "7", "--kind", "like"];

    let cohorts_stay = setting.file("policy-cohorts-stay");
    let other_record = setting.file("policy-other-record");
    for rules in [&cohorts_stay, &other_record] {
        let said = program.text(&["component", "check", rules]);
        assert!(said.lines().all(|line| line.starts_with("yes  ")), "{said}");
    }
    let with = |rules: &str| program.json(&[&["--component", rules], &signal[..]].concat());
    let receipt = with(&cohorts_stay);
    assert_eq!(
        (
            &receipt["cohorts"],
            &receipt["communities"],
            &receipt["gated"]
        ),
        (&1.into(), &0.into(), &true.into())
    );

    // It reads none of the nine-byte records: the user is shut, and is told why.
    let run = program.run(&["--component", &other_record, "status", "42"]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr.contains("10 bytes expected, 9 found"),
        "{}",
        run.stderr
    );
    let run = program.run(&[&["--component", &other_record], &signal[..]].concat());
    assert!(run.stdout.contains("held back"), "{}", run.stdout);
    assert!(run.stderr.contains("malformed"), "{}", run.stderr);

    // A leave under it writes a record of its own, which the shipped rules can't read.
    program.run(&["--component", &other_record, "leave", "42"]);
    let run = program.run(&["status", "42"]);
    assert!(
        run.stderr.contains("9 bytes expected, 10 found"),
        "{}",
        run.stderr
    );
    // And a leave under these repairs that.
    program.run(&["leave", "42"]);
    assert_eq!(setting.standing("42"), "left");
}
