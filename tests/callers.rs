//! Callers: what they reach, how errors come to them, and what stops them.
//!
//! Most of it is asked by a caller in text form, `callers/probe.wat`, which makes one call
//! for one user and tells how it ended. Those in other languages are in [`languages`].

mod languages;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate::callers::permission::{Function, Permission};
use tidegate::callers::{Caller, Limits, Streams};
use tidegate::storage::keys::{EntityId, Tag, encode_key};
use tidegate::{Config, Scope, TidalDb};

use crate::support::component::{from_text, from_text_with_contract};
use crate::support::faults::{Fault, Machine, Operation};
use crate::support::program::Program;
use crate::support::{community, signal, views};

const USER: u64 = 42;

fn probe() -> Vec<u8> {
    from_text_with_contract(include_str!("callers/probe.wat"), "caller", |_| {})
}

/// How many arguments make the probe call this function.
fn count(function: Function) -> usize {
    match function {
        Function::Status => 1,
        Function::Leave => 2,
        Function::Rejoin => 3,
        Function::History => 4,
        Function::Signal => 5,
    }
}

const SIGNAL_WITHOUT_KIND: usize = 6;

fn run(db: &Arc<TidalDb>, permission: &Permission, count: usize) -> Result<String, String> {
    let args = vec![String::new(); count];
    let streams = Streams {
        stdout: Box::new(std::io::sink()),
        stderr: Box::new(std::io::sink()),
    };
    Caller::load(&probe(), "`probe`", None)
        .unwrap()
        .run(db, permission.clone(), &Limits::default(), streams, &args)
        .unwrap()
}

fn everything() -> Permission {
    Permission::to(Function::ALL)
}

/// A store on a machine whose operations can be made to fail.
fn on(machine: &Machine, folder: &TempDir) -> Arc<TidalDb> {
    let config = Config::new(folder.path())
        // Never by itself: faults hit what the test calls.
        .flush_every(Duration::from_hours(1))
        .engine(Arc::new(machine.clone()))
        .disk(Arc::new(machine.clone()));
    Arc::new(TidalDb::from_config(config).unwrap())
}

#[test]
fn a_caller_reaches_the_functions_and_users_that_it_was_given_and_no_others() {
    for given in Function::ALL {
        for asked in Function::ALL {
            let db = Arc::new(TidalDb::ephemeral().unwrap());
            let before = db.stats();
            let outcome = run(&db, &Permission::to([given]), count(asked));
            if given == asked {
                assert_eq!(outcome, Ok(String::new()), "{given}");
                assert_eq!(db.stats() != before, given.writes(), "{given}");
                continue;
            }
            assert_eq!(
                outcome,
                Err(format!("3this caller was not given the function `{asked}`"))
            );
            assert_eq!(db.stats(), before, "{asked} was denied");
        }
    }
    let db = Arc::new(TidalDb::ephemeral().unwrap());
    for function in Function::ALL {
        let others = everything().for_users([USER - 1, USER + 1]);
        assert_eq!(
            run(&db, &others, count(function)),
            Err("3this caller was not given user 42".to_owned())
        );
        let user = everything().for_users([USER - 1, USER]);
        assert_eq!(run(&db, &user, count(function)), Ok(String::new()));
    }
}

#[test]
fn what_a_caller_does_is_what_the_library_would_do() {
    let db = Arc::new(TidalDb::ephemeral().unwrap());
    db.join_community(USER, "film").unwrap();
    for (function, gained) in [
        (Function::Signal, 1),
        (Function::Leave, 1),
        (Function::Signal, 1),
        (Function::Rejoin, 1),
        (Function::Signal, 2),
    ] {
        assert_eq!(run(&db, &everything(), count(function)), Ok(String::new()));
        assert_eq!(views(&db, &community("film"), 7), gained, "{function}");
    }
    assert_eq!(db.community_layer_history(USER).unwrap().len(), 2);
}

/// Each case of the contract's error, by its number there, with the library's text.
#[test]
fn every_error_of_the_contract_reaches_a_caller() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::default();
    let db = on(&machine, &folder);

    machine.plan(0, Fault::Before);
    let not_durable = run(&db, &everything(), count(Function::Leave)).unwrap_err();
    assert_eq!(machine.heal()[0], Operation::Write);
    assert!(
        not_durable.starts_with("0the latest leave or rejoin of user 42 is not durable"),
        "{not_durable}"
    );
    assert!(signal(&db, USER, 1).gated);

    let invalid_signal = db
        .signal_with_context(
            USER,
            &tidegate::Signal {
                item_id: 7,
                kind: "",
                weight: 1.0,
            },
        )
        .unwrap_err();
    assert_eq!(
        run(&db, &everything(), SIGNAL_WITHOUT_KIND),
        Err(format!("2{invalid_signal}"))
    );

    machine.plan(0, Fault::Before);
    let storage = run(&db, &everything(), count(Function::History)).unwrap_err();
    assert_eq!(machine.heal()[0], Operation::Scan);
    assert!(storage.starts_with("4could not "), "{storage}");

    let denied = run(
        &db,
        &Permission::to([Function::Status]),
        count(Function::Leave),
    );
    assert!(denied.unwrap_err().starts_with('3'));

    assert_malformed_record();
    assert_failing_component();
}

fn assert_malformed_record() {
    let program = Program::with_store();
    let key = encode_key(EntityId(USER), Tag::CommunityLeave, b"");
    program.put_records(&[(&key, &[7; 9])]);
    let db = Arc::new(TidalDb::open(program.path("store")).unwrap());
    let expected = db.community_layer_status(USER).unwrap_err().to_string();
    assert_eq!(
        run(&db, &everything(), count(Function::Status)),
        Err(format!("1{expected}"))
    );
}

fn assert_failing_component() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.wasm");
    let rules = include_str!("hostile/honest.wat").replace("(;leave;)", "unreachable");
    std::fs::write(&file, from_text(&rules)).unwrap();
    let config = Config::new(folder.path().join("store")).component(file);
    let db = Arc::new(TidalDb::from_config(config).unwrap());
    let error = run(&db, &everything(), count(Function::Leave)).unwrap_err();
    assert!(
        error.starts_with("5the component failed in `leave`: "),
        "{error}"
    );
    assert!(signal(&db, USER, 1).gated, "the gate is shut all the same");
}

/// A caller in text form that does something else than it should.
fn misbehaving(run: &str) -> Vec<u8> {
    let module = format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (func (export "run") (param i32 i32) (result i32) {run}))"#
    );
    from_text_with_contract(&module, "caller", |_| {})
}

fn failure(caller: &[u8], limits: &Limits) -> String {
    let db = Arc::new(TidalDb::ephemeral().unwrap());
    db.leave_community_layer(USER).unwrap();
    let streams = Streams {
        stdout: Box::new(std::io::sink()),
        stderr: Box::new(std::io::sink()),
    };
    let error = Caller::load(caller, "`caller`", None)
        .and_then(|caller| caller.run(&db, everything(), limits, streams, &[]))
        .unwrap_err()
        .to_string();
    assert!(signal(&db, USER, 1).gated);
    assert!(db.verify().unwrap().is_clean());
    error
}

#[test]
fn a_caller_that_breaks_a_limit_is_stopped_and_the_store_is_whole() {
    let limits = Limits {
        memory_bytes: 1 << 20,
        time: Duration::from_millis(200),
        output_bytes: 1_000,
    };
    for (run, reason) in [
        ("unreachable", "wasm `unreachable` instruction executed"),
        ("(loop (br 0)) unreachable", "it did not end within 200ms"),
        (
            // 2 MiB in pages of 64 KiB; growing gives -1.
            "(if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then unreachable))
            (i32.const 0)",
            "it asked for more than 1048576 bytes of memory",
        ),
        // ok, and a text of 2,000 bytes.
        (
            "(i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 2000))
            (i32.const 0)",
            "it returned more than 1000 bytes",
        ),
        ("(i32.const 0xfffffff0)", "out of bounds"),
    ] {
        let error = failure(&misbehaving(run), &limits);
        let expected = "the caller `caller` failed: ";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

/// It spends its time in the host, which no count of its own instructions shows.
#[test]
fn a_caller_that_never_stops_leaving_is_stopped_between_two_leaves() {
    let endless = include_str!("callers/probe.wat").replace(
        r#"(func (export "run") (param $args i32) (param $count i32) (result i32)"#,
        r#"(func (export "run") (param $args i32) (param $count i32) (result i32)
            (loop
                (call $leave (i64.const 42) (i32.const 0))
                (call $signal (i64.const 42) (i64.const 7) (i32.const 256) (i32.const 4)
                    (f64.const 1) (i32.const 0))
                (br 0))"#,
    );
    let endless = from_text_with_contract(&endless, "caller", |_| {});
    let limits = Limits {
        time: Duration::from_millis(300),
        ..Limits::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let db = Arc::new(TidalDb::open(folder.path()).unwrap());
    db.join_community(USER, "film").unwrap();
    let streams = Streams {
        stdout: Box::new(std::io::sink()),
        stderr: Box::new(std::io::sink()),
    };
    let caller = Caller::load(&endless, "`endless`", None).unwrap();
    let started = Instant::now();
    let error = caller
        .run(&db, everything(), &limits, streams, &[])
        .unwrap_err();
    assert!(error.to_string().contains("it did not end within 300ms"));
    assert!(started.elapsed() < Duration::from_secs(30));

    let leaves = db.stats().leaves;
    assert!(leaves > 1);
    let check = |db: &TidalDb| {
        let history = db.community_layer_history(USER).unwrap();
        assert_eq!(history.len() as u64, leaves);
        let membership = db.community_layer_status(USER).unwrap();
        assert_eq!(membership.left_at_ns, history.last().map(|last| last.at_ns));
        // Stopped behind a leave or behind the signal after it.
        assert!([leaves, leaves - 1].contains(&views(db, &Scope::Base, 7)));
        assert_eq!(views(db, &community("film"), 7), 0);
        assert!(db.verify().unwrap().is_clean());
    };
    check(&db);
    drop(db);
    check(&TidalDb::open(folder.path()).unwrap());
}

/// The first call of the host refuses what no signal may have, before it is looked at.
#[test]
fn a_caller_cannot_hand_megabytes_to_the_host() {
    let large = include_str!("callers/probe.wat")
        .replace(
            "(memory (export \"memory\") 16)",
            "(memory (export \"memory\") 64)",
        )
        .replace(
            "(i32.const 256) (i32.const 4) (f64.const 1)",
            "(i32.const 256) (i32.const 2000000) (f64.const 1)",
        );
    let large = from_text_with_contract(&large, "caller", |_| {});
    let db = Arc::new(TidalDb::ephemeral().unwrap());
    let streams = Streams {
        stdout: Box::new(std::io::sink()),
        stderr: Box::new(std::io::sink()),
    };
    let args = vec![String::new(); count(Function::Signal)];
    let error = Caller::load(&large, "`large`", None)
        .unwrap()
        .run(&db, everything(), &Limits::default(), streams, &args)
        .unwrap_err();
    assert!(
        error.to_string().starts_with("the caller `large` failed: "),
        "{error}"
    );
    assert_eq!(db.stats().signals, 0);
}

#[test]
fn a_caller_that_does_not_fit_is_refused_with_the_import_or_the_version() {
    let other_version = from_text_with_contract(
        &include_str!("callers/probe.wat").replace("@0.1.0", "@0.2.0"),
        "caller",
        |contract| *contract = contract.replacen("@0.1.0;", "@0.2.0;", 1),
    );
    let other_import = from_text_with_contract(
        r#"(module
            (import "other:system/files" "erase" (func))
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
            (func (export "run") (param i32 i32) (result i32) (call 0) unreachable))"#,
        "curious",
        |contract| {
            *contract = "package other:system;
                interface files { erase: func(); }
                world curious {
                    import files;
                    export run: func(args: list<string>) -> result<string, string>;
                }"
            .to_owned();
        },
    );
    let limits = Limits::default();
    for (caller, parts) in [
        (
            &other_version[..],
            &[
                "it imports `tidegate:community/",
                "@0.2.0`, and this host offers version 0.1.0 of that package",
            ][..],
        ),
        (&other_import, &["`other:system/files`"]),
        (tidegate::SHIPPED_COMPONENT, &["it does not export `run"]),
        (b"(component)", &["it is not WebAssembly in binary form"]),
    ] {
        let error = failure(caller, &limits);
        assert!(
            error.starts_with("the caller `caller` can't be run: "),
            "{error}"
        );
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}

struct CommandLine {
    program: Program,
    caller: PathBuf,
}

impl CommandLine {
    fn new() -> Self {
        let program = Program::with_store();
        program.write("probe.wasm", probe());
        CommandLine {
            caller: program.path("probe.wasm"),
            program,
        }
    }

    fn arguments<'a>(&'a self, options: &[&'a str], args: &[&'a str]) -> Vec<&'a str> {
        let caller = self.caller.to_str().unwrap();
        [&["run"], options, &[caller], args].concat()
    }
}

#[test]
fn the_command_line_runs_a_caller_with_what_it_allows() {
    let line = CommandLine::new();
    let leave = ["", ""];
    line.program
        .run(&line.arguments(&[], &leave))
        .fails_saying(&["was not given", "`leave`", "probe.wasm"]);
    line.program
        .run(&line.arguments(&["--allow", "leave", "--user", "43"], &leave))
        .fails_saying(&["was not given user 42"]);
    assert_eq!(line.program.json(&["status", "42"])["status"], "active");

    let allowed = line.arguments(&["--allow", "status,leave", "--user", "42"], &leave);
    assert_eq!(line.program.text(&allowed), "\n");
    assert_eq!(line.program.json(&["status", "42"])["status"], "left");
    assert_eq!(
        line.program.json(&line.arguments(&[], &[""]))["outcome"],
        ""
    );
}

#[test]
fn the_command_line_refuses_what_it_does_not_know() {
    let line = CommandLine::new();
    for options in [
        &["--allow", "everything"][..],
        &["--user", "-1"],
        &["--user", "18446744073709551616"],
        &["--timeout", "0"],
        &["--memory", "0"],
    ] {
        line.program
            .run(&line.arguments(options, &[]))
            .refuses_its_usage();
    }
    line.program
        .run(&["run", "missing.wasm"])
        .fails_saying(&["missing.wasm", "check the path"]);
    // A caller that may only read makes no store.
    let line = CommandLine {
        program: Program::new(),
        ..line
    };
    line.program
        .run(&line.arguments(&[], &[""]))
        .fails_saying(&["there is no store"]);
}
