//! `component check`: what it says of components that break one promise of the contract
//! each.

use tidegate::{SHIPPED_COMPONENT, check_component};

use crate::support::component::from_text;
use crate::support::program::Program;

const HONEST: &str = include_str!("hostile/honest.wat");

/// The names of the checks that a component fails.
fn failures(component: &[u8]) -> Vec<&'static str> {
    let checks = check_component(component).into_iter();
    checks
        .filter(|check| check.failure.is_some())
        .map(|check| check.name)
        .collect()
}

fn changed(code: &str, other: &str) -> Vec<u8> {
    assert_eq!(HONEST.matches(code).count(), 1, "{code}");
    from_text(&HONEST.replace(code, other))
}

#[test]
fn honest_components_keep_every_promise() {
    for component in [SHIPPED_COMPONENT, &from_text(HONEST)] {
        assert_eq!(failures(component), Vec::<&str>::new());
        assert_eq!(check_component(component).len(), 9);
    }
    // Another policy is no breach of the contract.
    let all = changed(
        "(select (i32.const 0) (i32.const 3) (local.get $status))",
        "(i32.const 3)",
    );
    assert_eq!(failures(&all), Vec::<&str>::new());
}

#[test]
fn each_broken_promise_is_named() {
    let membership = "(return (call $membership (i32.const 0) (local.get $user)";
    for (mark, code, failed) in [
        (
            "(;leave;)",
            format!("{membership} (i32.const 1) (local.get $now)))"),
            &["leaving sets the later boundary"][..],
        ),
        (
            "(;rejoin;)",
            format!("{membership} (i32.const 0) (i64.const 0)))"),
            &["rejoining keeps the boundary"],
        ),
        (
            "(drop (call $membership (i32.const 8) (local.get $user) (i32.const 0) (i64.const 0)))",
            "(drop (call $membership (i32.const 8) (local.get $user) (i32.const 1) (i64.const 0)))"
                .to_owned(),
            &["a user without a record is active"],
        ),
        (
            "(;deserialize;)",
            "(i64.store (i32.const 0) (i64.const 0)) (return (i32.const 0))".to_owned(),
            &[
                "records read back as what was written",
                "other bytes are refused, or are a record",
            ],
        ),
        (
            "(i32.ne (local.get $length) (i32.const 9))",
            "(i32.lt_u (local.get $length) (i32.const 9))".to_owned(),
            &["other bytes are refused, or are a record"],
        ),
        (
            "(;restore;)",
            "(i32.store (i32.const 4) (i32.const 1))".to_owned(),
            &["restore says what status and signal say"],
        ),
        (
            "(;signal;)",
            "(if (i64.eq (local.get $user) (i64.const 42)) (then (return (i32.const 0))))"
                .to_owned(),
            &[
                "restore says what status and signal say",
                "all users who never left may do the same",
            ],
        ),
        (
            "(;signal;)",
            "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
             (if (i32.eq (global.get $calls) (i32.const 1)) (then (return (i32.const 3))))"
                .to_owned(),
            &["another instance says the same"],
        ),
        (
            "(local.set $length (i32.const -1))",
            "(local.set $length (i32.const 9))".to_owned(),
            &["restore says what status and signal say"],
        ),
        (
            "(local.get $count))
    (local.set $left (local.get $count))",
            "(local.get $known))
    (local.set $left (local.get $known))"
                .to_owned(),
            &["restore says what status and signal say"],
        ),
    ] {
        assert_eq!(failures(&changed(mark, &code)), failed, "{code}");
    }
    assert_eq!(
        failures(b"(component)"),
        ["it imports nothing and exports the interface"]
    );
}

#[test]
fn the_command_line_says_yes_or_no_to_each() {
    let program = Program::new();
    let said = program.text(&["component", "check"]);
    assert_eq!(said.lines().count(), 9, "{said}");
    assert!(said.lines().all(|line| line.starts_with("yes  ")), "{said}");

    program.write("wrong.wasm", changed("(;leave;)", "unreachable"));
    let run = program.run(&["component", "check", "wrong.wasm"]);
    assert_eq!(run.status, Some(1));
    let line = "NO   leaving sets the later boundary: the component failed in `leave`";
    assert!(run.stdout.contains(line), "{}", run.stdout);

    let run = program.run(&["--json", "component", "check", "wrong.wasm"]);
    let said: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(said["conforms"], false);
    assert_eq!(said["checks"][0]["failure"], serde_json::Value::Null);
}
