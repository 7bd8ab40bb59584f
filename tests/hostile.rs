//! Components that mean harm: each one is the honest one of `hostile/honest.wat` with
//! something else in the place of a mark. Each gets an error that names the function,
//! in bounded time and memory; the gate is as it was or shut; the host goes on.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use tidegate::{Config, Error, MembershipStatus, Result, SHIPPED_COMPONENT, TidalDb};

use crate::support::component::from_text;
use crate::support::signal;

const HONEST: &str = include_str!("hostile/honest.wat");

/// The one whom the component is to be asked about.
const USER: u64 = 42;
/// Another one, who left under the honest component.
const LEFT_BEFORE: u64 = 43;
/// One of whom the component hears nothing.
const OTHER: u64 = 44;

/// The honest component with code in the place of some marks.
fn with(changes: &[(&str, &str)]) -> Vec<u8> {
    let mut module = HONEST.to_owned();
    for (mark, code) in changes {
        let mark = format!("(;{mark};)");
        assert!(module.contains(&mark), "{mark}");
        module = module.replace(&mark, code);
    }
    from_text(&module)
}

/// A store in which a user left under the honest component.
struct Setting {
    folder: TempDir,
}

impl Setting {
    fn new() -> Self {
        let setting = Setting {
            folder: tempfile::tempdir().unwrap(),
        };
        let db = setting.open(&with(&[])).unwrap();
        db.leave_community_layer(LEFT_BEFORE).unwrap();
        setting
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn open(&self, component: &[u8]) -> Result<TidalDb> {
        let file = self.folder.path().join("component.wasm");
        std::fs::write(&file, component).unwrap();
        TidalDb::from_config(Config::new(self.store()).component(file))
    }

    /// The failure of a component when the store is opened with it.
    fn open_fails(&self, component: &[u8]) -> String {
        let error = self.open(component).map(drop).unwrap_err();
        assert!(matches!(
            error,
            Error::ComponentFailed { .. } | Error::ComponentRefused { .. }
        ));
        // The shipped component reads the same records.
        let db = TidalDb::open(self.store()).unwrap();
        check_others(&db);
        error.to_string()
    }

    /// The failure of a component in a leave and, if it does not fail there, in a
    /// rejoin. The gate is shut from the leave on.
    fn transition_fails(&self, component: &[u8]) -> String {
        let db = self.open(component).unwrap();
        assert!(!signal(&db, USER, 1).gated);
        let left = db.leave_community_layer(USER);
        assert!(signal(&db, USER, 1).gated);
        let rejoined = db.rejoin_community_layer(USER);
        assert!(signal(&db, USER, 1).gated || left.is_err() && rejoined.is_ok());
        let status = if left.is_ok() {
            MembershipStatus::Left
        } else {
            MembershipStatus::Active
        };
        check_others(&db);
        drop(db);

        let db = TidalDb::open(self.store()).unwrap();
        check_others(&db);
        assert_eq!(db.community_layer_status(USER).unwrap().status, status);
        assert_eq!(signal(&db, USER, 1).gated, left.is_ok());
        db.leave_community_layer(USER).unwrap();
        assert!(signal(&db, USER, 1).gated);

        let error = left.and(rejoined).unwrap_err();
        assert!(matches!(error, Error::ComponentFailed { .. }), "{error}");
        error.to_string()
    }
}

/// Whoever the component was not asked about is where they were.
fn check_others(db: &TidalDb) {
    assert!(signal(db, LEFT_BEFORE, 1).gated);
    assert!(!signal(db, OTHER, 1).gated);
}

#[track_caller]
fn check_names(error: &str, function: &str, reason: &str) {
    let expected = format!("the component failed in `{function}`: ");
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn the_honest_component_does_what_the_shipped_one_does() {
    let setting = Setting::new();
    let db = setting.open(&with(&[])).unwrap();
    db.leave_community_layer(USER).unwrap();
    assert!(signal(&db, USER, 1).gated);
    db.rejoin_community_layer(USER).unwrap();
    assert!(!signal(&db, USER, 1).gated);
    db.leave_community_layer(USER).unwrap();
    check_others(&db);
    let left = db.community_layer_status(USER).unwrap();
    drop(db);
    for component in [SHIPPED_COMPONENT, &with(&[])] {
        let db = setting.open(component).unwrap();
        assert_eq!(db.community_layer_status(USER).unwrap(), left);
        assert!(db.verify().unwrap().is_clean());
        check_others(&db);
    }
}

/// What makes no difference where it is done.
const EVERYWHERE: [(&str, &str); 4] = [
    ("(loop (br 0))", "did not return within its limit"),
    ("unreachable", "unreachable"),
    ("(call $deeper)", "call stack exhausted"),
    ("(drop (i32.load (i32.const -4)))", "out of bounds"),
];

const DEEPER: (&str, &str) = ("functions", "(func $deeper (call $deeper) (call $deeper))");

#[test]
fn no_function_can_hold_up_or_bring_down_the_host() {
    let setting = Setting::new();
    for (code, reason) in EVERYWHERE {
        for (mark, function) in [
            ("leave", "leave"),
            ("rejoin", "rejoin"),
            ("status", "status"),
            ("serialize", "serialize-membership"),
        ] {
            let component = with(&[(mark, code), DEEPER]);
            check_names(
                &Setting::new().transition_fails(&component),
                function,
                reason,
            );
        }
        for function in ["restore", "signal"] {
            let component = with(&[(function, code), DEEPER]);
            check_names(&setting.open_fails(&component), function, reason);
        }
        // The host asks it nothing, so it does no harm.
        let component = with(&[("deserialize", code), DEEPER]);
        let db = setting.open(&component).unwrap();
        db.leave_community_layer(USER).unwrap();
    }
}

#[test]
fn no_start_code_can_hold_up_or_bring_down_the_host() {
    let setting = Setting::new();
    for (code, reason) in EVERYWHERE {
        let start = format!("(func $start {code}) (start $start) {}", DEEPER.1);
        let error = setting.open_fails(&with(&[("functions", &start)]));
        // The first line of wasmtime's error; what follows is not for people.
        assert!(error.contains("can't be used"), "{error}");
        assert!(
            error.contains(reason) || error.contains("all fuel consumed"),
            "{error}"
        );
    }
}

#[test]
fn a_trap_at_any_call_of_a_transition_leaves_the_gate_shut() {
    // A leave asks leave, signal, serialize and status; a rejoin four more.
    let functions = ["leave", "signal", "serialize-membership", "status"];
    let again = ["rejoin", "signal", "serialize-membership", "status"];
    // Opening asks what users who never left may do, and restores the one who left before.
    for (number, function) in (3..).zip(functions.iter().chain(&again)) {
        let code = format!(
            "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (if (i32.eq (global.get $calls) (i32.const {number})) (then unreachable))"
        );
        let error = Setting::new().transition_fails(&with(&[("each", &code)]));
        check_names(&error, function, "unreachable");
    }
}

#[test]
fn a_record_of_any_other_length_than_the_contract_allows_is_not_stored() {
    for (length, reason) in [
        ("0", "0 bytes; a record has 1 to 1024"),
        ("10", "bytes that it can't read back"),
        ("1025", "1025 bytes"),
        ("1048576", "out of bounds"),
        ("0xffffffff", "out of bounds"),
    ] {
        let code = format!(
            "(i32.store (i32.const 0) (i32.const 8)) (i32.store (i32.const 4) (i32.const {length}))
            (return (i32.const 0))"
        );
        let error = Setting::new().transition_fails(&with(&[("serialize", &code)]));
        check_names(&error, "serialize-membership", reason);
    }
    // A list of 1 MiB that is all there.
    let code = "(drop (memory.grow (i32.const 16))) (i32.store (i32.const 0) (i32.const 8))
        (i32.store (i32.const 4) (i32.const 1048576)) (return (i32.const 0))";
    let error = Setting::new().transition_fails(&with(&[("serialize", code)]));
    check_names(
        &error,
        "serialize-membership",
        "1048576 bytes; a record has 1 to 1024",
    );
}

#[test]
fn a_membership_of_another_user_is_not_taken_from_any_function() {
    let other = "(local.set $user (i64.const 7))";
    for (mark, function) in [
        ("leave", "leave"),
        ("rejoin", "rejoin"),
        ("status", "status"),
    ] {
        let error = Setting::new().transition_fails(&with(&[(mark, other)]));
        check_names(&error, function, "a membership of user 7 for user 42");
    }
    let in_restored = "(i64.store offset=8 (i32.load (i32.const 0)) (i64.const 7))";
    let error = Setting::new().open_fails(&with(&[("restore", in_restored)]));
    check_names(&error, "restore", "a membership of user 7 for user 43");
}

#[test]
fn a_membership_that_breaks_the_contract_is_not_taken() {
    let no_boundary =
        "(return (call $membership (i32.const 0) (local.get $user) (i32.const 1) (i64.const 0)))";
    let active = "(return (call $membership (i32.const 0) (local.get $user) (i32.const 0) (local.get $now)))";
    let left = "(return (call $membership (i32.const 0) (local.get $user) (i32.const 1) (local.get $before)))";
    // What it serialized as left it reads back as active.
    let forgetful = "(local.set $is_stored (i32.const 0))";
    for (mark, code, function) in [
        ("leave", no_boundary, "leave"),
        ("leave", active, "leave"),
        ("rejoin", left, "rejoin"),
        ("rejoin", no_boundary, "rejoin"),
        ("status", forgetful, "serialize-membership"),
    ] {
        let error = Setting::new().transition_fails(&with(&[(mark, code)]));
        check_names(&error, function, "it broke its contract");
    }
}

#[test]
fn values_that_no_type_allows_are_refused() {
    let result = |code: &str| format!("{code} (return (i32.const 0))");
    for (mark, code, function) in [
        // The status is none of the two, the optional is neither there nor not.
        ("leave", "(i32.store8 (i32.const 8) (i32.const 2))", "leave"),
        (
            "leave",
            "(i32.store8 (i32.const 16) (i32.const 2))",
            "leave",
        ),
        (
            "status",
            "(i32.store8 (i32.const 0) (i32.const 2))",
            "status",
        ),
        (
            "serialize",
            "(i32.store (i32.const 0) (i32.const 0x7fffffff)) (i32.store (i32.const 4) (i32.const 9))",
            "serialize-membership",
        ),
        // A reason that is not UTF-8, and one that is elsewhere.
        (
            "status",
            "(i32.store8 (i32.const 0) (i32.const 1)) (i32.store (i32.const 8) (i32.const 16))
            (i32.store (i32.const 12) (i32.const 2)) (i32.store (i32.const 16) (i32.const -1))",
            "status",
        ),
        (
            "status",
            "(i32.store8 (i32.const 0) (i32.const 1)) (i32.store (i32.const 8) (i32.const -1))
            (i32.store (i32.const 12) (i32.const -1))",
            "status",
        ),
    ] {
        let error = Setting::new().transition_fails(&with(&[(mark, &result(code))]));
        check_names(&error, function, "");
    }
    for pointer in ["1", "4", "-8", "0x7ffffff8"] {
        let code = format!("(return (i32.const {pointer}))");
        for mark in ["leave", "status", "serialize"] {
            Setting::new().transition_fails(&with(&[(mark, &code)]));
        }
        Setting::new().open_fails(&with(&[("restore", &code)]));
    }
}

#[test]
fn flags_that_the_contract_does_not_name_open_nothing_more() {
    let setting = Setting::new();
    let db = setting
        .open(&with(&[("signal", "(return (i32.const -4))")]))
        .unwrap();
    db.leave_community_layer(USER).unwrap();
    assert!(signal(&db, USER, 1).gated);
}

#[test]
fn restore_that_returns_other_counts_is_refused() {
    for (count, reason) in [
        ("0", "0 entries for 1 records"),
        ("2", "2 entries for 1 records"),
        ("-1", ""),
    ] {
        let code = format!("(i32.store (i32.const 4) (i32.const {count}))");
        let error = Setting::new().open_fails(&with(&[("restore", &code)]));
        check_names(&error, "restore", reason);
    }
}

#[test]
fn restore_that_contradicts_the_journal_opens_no_gate() {
    let setting = Setting::new();
    // Of user 43, who left: active, and may take part in all.
    let lie = "(i32.store8 offset=16 (i32.load (i32.const 0)) (i32.const 0))
        (i32.store8 offset=40 (i32.load (i32.const 0)) (i32.const 3))";
    let db = setting.open(&with(&[("restore", lie)])).unwrap();
    check_others(&db);
    assert!(matches!(
        db.community_layer_status(LEFT_BEFORE),
        Err(Error::MalformedRecord { .. })
    ));
    assert!(!db.verify().unwrap().is_clean());
    drop(db);
    // Left, without a boundary.
    let no_boundary = "(i32.store8 offset=24 (i32.load (i32.const 0)) (i32.const 0))";
    check_others(&setting.open(&with(&[("restore", no_boundary)])).unwrap());
}

/// Growing is refused, not an error; so each one traps when it was refused.
const GREEDY: [(&str, &str, &str); 4] = [
    (
        "",
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
        "",
    ),
    (
        "",
        "(if (i32.eq (memory.grow (i32.const 65000)) (i32.const -1)) (then unreachable))",
        "",
    ),
    (
        "(table $table 0 funcref)",
        "(loop (br_if 0 (i32.ne
            (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable",
        "",
    ),
    // Ten pages more for each level of a deep recursion.
    (
        "",
        "(call $greedy) unreachable",
        "(func $greedy (drop (memory.grow (i32.const 10))) (call $greedy) (call $greedy))",
    ),
];

#[test]
fn a_component_cant_take_more_than_its_share_of_memory() {
    for (globals, code, functions) in GREEDY {
        let changes = [
            ("leave", code),
            ("globals", globals),
            ("functions", functions),
        ];
        let error = Setting::new().transition_fails(&with(&changes));
        check_names(&error, "leave", "");
    }
    for functions in [
        "(memory 65536)",
        "(table 1000000000 funcref)",
        "(memory 1) (memory 1) (memory 1)",
        &"(table 10 funcref)".repeat(20),
    ] {
        let changes = [("globals", functions)];
        let error = Setting::new().open_fails(&with(&changes));
        assert!(error.contains("can't be used"), "{error}");
    }
}

/// In a process of its own, because the peak is that of a whole process.
#[test]
fn hostile_components_take_less_than_64_mib_together() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "hostile::measures_the_peak"])
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}

#[test]
#[ignore = "run by `hostile_components_take_less_than_64_mib_together`"]
fn measures_the_peak() {
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse::<u64>().unwrap()
    };
    // What an honest one takes, compilation included.
    drop(Setting::new());
    let before = peak_kib();
    a_component_cant_take_more_than_its_share_of_memory();
    a_record_of_any_other_length_than_the_contract_allows_is_not_stored();
    no_function_can_hold_up_or_bring_down_the_host();
    let grown = peak_kib() - before;
    assert!(grown < 64 << 10, "{grown} KiB");
}

#[test]
fn refuses_a_component_that_ends_early() {
    let setting = Setting::new();
    let whole = SHIPPED_COMPONENT;
    for length in (0..whole.len()).step_by(1000).chain([whole.len() - 1]) {
        let error = setting.open_fails(&whole[..length]);
        assert!(error.contains("can't be used"), "{error}");
    }
}

#[test]
fn refuses_a_component_that_wants_wasi() {
    let component = wat::parse_str(
        r#"(component
            (import "wasi:cli/environment@0.2.0" (instance
                (export "get-arguments" (func (result (list string)))))))"#,
    )
    .unwrap();
    let error = Setting::new().open_fails(&component);
    assert!(
        error.contains("it imports `wasi:cli/environment@0.2.0`"),
        "{error}"
    );
}
