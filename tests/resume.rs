//! An ingest that is killed again and again, and resumed each time, counts every line
//! exactly once.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tidegate::TidalDb;

use crate::support::program::Program;

const USERS: u64 = 40;

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Signals with all other events between them, some of these in runs.
fn stream(lines: u64) -> String {
    let mut numbers = Numbers(7);
    let mut stream = String::new();
    for _ in 0..lines {
        let user = numbers.below(USERS);
        let event = numbers.below(200);
        let mut other = |text: &str| writeln!(stream, "{{{text},\"user_id\":{user}}}").unwrap();
        match event {
            0 | 1 => other(r#""type":"leave""#),
            2 | 3 => other(r#""type":"rejoin""#),
            4 => other(r#""type":"join","community":"film""#),
            5 => other(r#""type":"quit","community":"film""#),
            _ => other(&format!(r#""item_id":{},"kind":"view""#, numbers.below(50))),
        }
        if event == 1 {
            // The other way about, with nothing between.
            other(r#""type":"rejoin""#);
            other(r#""type":"leave""#);
        }
    }
    stream
}

/// What does not depend on when it happened.
fn outcome(program: &Program) -> (Value, Vec<Value>, Vec<Vec<&'static str>>) {
    let stats = program.json(&["stats"]);
    let tops = ["--limit 1000", "--limit 1000 --community film"].map(|options| {
        let arguments: Vec<&str> = ["top"].into_iter().chain(options.split(' ')).collect();
        program.json(&arguments)
    });
    let db = TidalDb::open(program.path("store")).unwrap();
    assert!(db.verify().unwrap().is_clean());
    let histories = (0..USERS).map(|user_id| {
        let history = db.community_layer_history(user_id).unwrap();
        history
            .iter()
            .map(|transition| transition.to.name())
            .collect()
    });
    (stats, tops.to_vec(), histories.collect())
}

fn set_up(program: &Program) {
    // So that the first event of the stream meets a community to quit.
    program.text(&["community", "join", "1000", "film"]);
}

/// Kills an ingest up to `kills` times; returns how many kills interrupted it.
fn ingest_with_kills(program: &Program, file: &Path, kills: u64) -> u64 {
    let file = file.to_str().unwrap();
    let mut numbers = Numbers(11);
    let mut interrupted = 0;
    for _ in 0..kills {
        let mut process = program
            .command(&["ingest", file, "--resume"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(20 + numbers.below(60)));
        process.kill().unwrap();
        interrupted += u64::from(!process.wait().unwrap().success());
    }
    program.text(&["ingest", file, "--resume"]);
    interrupted
}

#[test]
fn every_line_counts_once_however_often_the_ingest_is_killed() {
    let whole = Program::new();
    let stream = stream(60_000);
    whole.write("events.jsonl", &stream);
    set_up(&whole);
    whole.text(&["ingest", "events.jsonl"]);

    let killed = Program::new();
    killed.write("events.jsonl", &stream);
    set_up(&killed);
    let interrupted = ingest_with_kills(&killed, &killed.path("events.jsonl"), 50);
    assert!(interrupted > 5, "{interrupted} kills came in time");
    let (killed_stats, killed_tops, killed_histories) = outcome(&killed);
    let (stats, tops, histories) = outcome(&whole);
    assert_eq!(killed_stats, stats);
    // Not as `assert_eq`: they are long.
    assert!(killed_tops == tops);
    assert!(killed_histories == histories);

    let again = killed.json(&["ingest", "events.jsonl", "--resume"]);
    assert_eq!(again["signals"], 0, "there is nothing left to read");
}

#[test]
fn a_line_that_stopped_an_ingest_is_read_again_once_it_is_mended() {
    let program = Program::new();
    let good = r#"{"user_id":1,"item_id":2,"kind":"view"}"#;
    program.write("events.jsonl", format!("{good}\n{good}\n{{}}\n{good}\n"));
    let run = program.run(&["ingest", "events.jsonl"]);
    run.fails_saying(&["events.jsonl:3", "is kept: 2 lines"]);
    program.write("events.jsonl", format!("{good}\n{good}\n{good}\n{good}\n"));
    let rest = program.json(&["ingest", "events.jsonl", "--resume"]);
    assert_eq!(rest["signals"], 2);
    let stats = program.json(&["stats"]);
    assert_eq!(stats["signals"], 4);
}

#[test]
fn an_input_that_has_become_shorter_is_not_resumed() {
    let program = Program::new();
    let good = r#"{"user_id":1,"item_id":2,"kind":"view"}"#;
    program.write("events.jsonl", format!("{good}\n{good}\n"));
    program.text(&["ingest", "events.jsonl"]);
    program.write("events.jsonl", format!("{good}\n"));
    program
        .run(&["ingest", "events.jsonl", "--resume"])
        .fails_saying(&["it ends before record 2", "--resume"]);
}
