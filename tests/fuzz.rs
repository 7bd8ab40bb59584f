//! What reads bytes from outside takes any bytes: without a panic, within bounds, and
//! never with a gate that opens. A short run of inputs at random; the long ones, guided by
//! coverage, are the targets of the package in this module's folder.

mod events;
mod keys;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tidegate::events::Format;
use tidegate::{Config, Disk as _, Error, TidalDb};

use crate::support::faults::Machine;
use crate::support::fuzz::Target;
use crate::support::rules::{Native, Rules as _, shipped};
use crate::support::{profile, signal};

fn fuzz_events(name: &'static str, format: Format, words: &'static [&'static str]) {
    let target = Target {
        name,
        words,
        iterations: 4_000,
    };
    target.fuzz(target.corpus(), |input| events::check(input, format));
}

#[test]
fn json_lines_of_any_bytes_are_read_to_their_end() {
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\u",
        "\\",
        "\n",
        "\"user_id\":",
        "\"item_id\":",
        "\"kind\":",
        "\"weight\":",
        "\"type\":",
        "\"attributes\":",
        "\"leave\"",
        "\"profile\"",
        "\"community\":",
        "18446744073709551616",
        "-",
        "1e",
        "0",
        "null",
        "\u{feff}",
        "é",
    ];
    fuzz_events("events-jsonl", Format::Jsonl, words);
}

#[test]
fn csv_of_any_bytes_is_read_to_its_end() {
    let words = &[
        "user_id",
        "item_id",
        "kind",
        "weight",
        ",",
        "\"",
        "\"\"",
        "\n",
        "\r",
        "\r\n",
        "1",
        "18446744073709551616",
        "1e400",
        "nan",
        "view",
        "\u{feff}",
        "é",
    ];
    fuzz_events("events-csv", Format::Csv, words);
}

#[test]
fn tsv_of_any_bytes_is_read_to_its_end() {
    let words = &[
        "user_id", "item_id", "kind", "weight", "\t", "\"", "\n", "\r", "1", "-1", "0x1", "view",
    ];
    fuzz_events("events-tsv", Format::Tsv, words);
}

#[test]
fn recbole_files_of_any_bytes_are_read_to_their_end() {
    let words = &[
        "user_id:token",
        "item_id:token",
        "rating:float",
        "timestamp:float",
        "class:token_seq",
        "x:float_seq",
        ":",
        "\t",
        " ",
        "\n",
        "\r",
        "\"",
        "1",
        "4.5",
        "inf",
    ];
    fuzz_events("events-recbole", Format::Recbole, words);
}

#[test]
fn keys_of_any_bytes_parse_or_do_not() {
    let target = Target {
        name: "keys",
        words: &[
            "\0",
            "\0\0\0\0\0\0\0\0",
            "\u{11}",
            "\u{0e}",
            "@",
            "A",
            "film",
        ],
        iterations: 50_000,
    };
    target.fuzz(target.corpus(), keys::check);
}

#[test]
fn records_of_any_bytes_are_to_the_component_what_they_are_to_the_native_rules() {
    let target = Target {
        name: "records",
        words: &[
            "\0",
            "\u{1}",
            "\u{2}",
            "\0\0\0\0\0\0\0\0",
            "\u{1}\0\0\0\0\0\0\0\u{1}",
        ],
        iterations: 10_000,
    };
    // `fuzz` wants a closure that changes nothing.
    let component = RefCell::new(shipped());
    target.fuzz(target.corpus(), |input| {
        // Where it traps, the helper panics.
        let component = &mut *component.borrow_mut();
        let read = Native.deserialize(7, input);
        assert_eq!(component.deserialize(7, input), read);
        assert_eq!(component.status(7, Some(input)), read);
        // The same bytes as three columns that need not fit each other.
        let (users, rest) = input.split_at(input.len() / 3);
        let (lengths, bytes) = rest.split_at(rest.len() / 4);
        let users: Vec<u64> = users.iter().map(|byte| u64::from(*byte)).collect();
        let lengths: Vec<u32> = lengths
            .iter()
            .map(|byte| {
                if *byte < 250 {
                    u32::from(*byte % 12)
                } else {
                    u32::MAX - u32::from(*byte)
                }
            })
            .collect();
        assert_eq!(
            component.restore(&users, &lengths, bytes),
            Native.restore(&users, &lengths, bytes)
        );
    });
}

#[test]
fn a_journal_of_any_bytes_opens_no_gate_that_the_store_says_is_shut() {
    const NAME: &str = "journal";
    let folder = tempfile::tempdir().unwrap();
    let open = |machine: &Machine| {
        TidalDb::from_config(
            Config::new(folder.path())
                .engine(Arc::new(machine.clone()))
                .disk(Arc::new(machine.clone())),
        )
    };
    let furnished = Machine::default();
    {
        let db = open(&furnished).unwrap();
        for user_id in [1, 2, 3] {
            db.leave_community_layer(user_id).unwrap();
        }
        db.rejoin_community_layer(1).unwrap();
        db.rejoin_community_layer(2).unwrap();
        db.leave_community_layer(2).unwrap();
    }
    let target = Target {
        name: NAME,
        words: &["tgB1", "tidegate journal", "\u{2}\0\0\0", "\0", "\u{7f}"],
        iterations: 300,
    };
    let mut seeds = target.corpus();
    // The number of the store is chosen at random, so its own can't be in a file.
    seeds.push(furnished.read(Path::new(NAME)).unwrap().unwrap());
    target.fuzz(seeds, |input| {
        let machine = furnished.copy();
        machine.set_file(Path::new(NAME), Some(input.to_vec()));
        match open(&machine) {
            Ok(db) => {
                assert!(signal(&db, 2, 1).gated);
                assert!(signal(&db, 3, 1).gated);
            }
            Err(Error::Damaged { .. } | Error::StoreFormat { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        machine.switch_off();
    });
}

#[test]
fn a_backup_of_any_bytes_makes_a_whole_store_or_none() {
    let target = Target {
        name: "backup",
        words: &["tidegate backup\n", "\u{1}\0\0\0", "\0", "\u{7f}"],
        iterations: 100,
    };
    target.fuzz(target.corpus(), |mut input| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restored");
        if TidalDb::restore(&path, &mut input).is_ok() {
            assert!(TidalDb::open(&path).unwrap().verify().unwrap().is_clean());
        } else {
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    });
}

/// On a thread with the stack that threads have unless asked otherwise.
#[test]
fn predicates_of_any_text_are_refused_or_evaluated() {
    let target = Target {
        name: "predicates",
        words: &[
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "!",
            "-",
            "+",
            "*",
            "/",
            "%",
            "?",
            ":",
            ",",
            ".",
            "<",
            "==",
            "&&",
            "||",
            " in ",
            "age",
            "tags",
            "home",
            "1",
            "-9223372036854775808",
            "1u",
            "1e308",
            "'a'",
            "\"",
            "r'",
            "b'",
            "\\x",
            "\\u",
            "true",
            "null",
            "int(",
            "size(",
            "tags.all(x, ",
            "tags.exists(x, ",
            "tags.map(x, ",
            "has(home.",
            "duration('1h')",
            "timestamp('",
            "matches(",
            "x",
            "a?",
            "é",
            "\n",
            "//",
            "dyn(",
            ".filter(x, ",
        ],
        iterations: 2_000,
    };
    let run = move || {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let config = Config::new(folder.path())
            .engine(Arc::new(machine.clone()))
            .disk(Arc::new(machine));
        let db = TidalDb::from_config(config).unwrap();
        let attributes = serde_json::json!({
            "age": 24, "tags": ["a", "b"], "home": {"city": "Oslo"}, "x": -0.5, "a": true
        });
        db.set_profile(1, &profile(&attributes)).unwrap();
        db.set_profile(2, &profile(&serde_json::json!({}))).unwrap();
        target.fuzz(target.corpus(), |input| {
            let text = String::from_utf8_lossy(input);
            match db.define_cohort("fuzzed", &text) {
                Ok(()) | Err(Error::InvalidPredicate { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        });
    };
    let thread = thread::Builder::new().stack_size(2 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}
