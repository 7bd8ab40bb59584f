//! Components that do not fit: refused when they are loaded, or bounded when they
//! are called, always with an error that names what is wrong.

use std::path::PathBuf;

use tempfile::TempDir;
use tidegate::{Config, Error, MembershipStatus, Result, TidalDb};

use crate::support::component::{from_text, from_text_with_contract};
use crate::support::signal;

const USER: u64 = 42;

/// A store's folder, and a component in a file beside it.
struct Setting {
    folder: TempDir,
}

impl Setting {
    fn new(component: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("component.wasm"), component).unwrap();
        Setting { folder }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn open(&self) -> Result<TidalDb> {
        let component = self.folder.path().join("component.wasm");
        TidalDb::from_config(Config::new(self.store()).component(component))
    }

    /// Why the component is refused.
    fn refusal(&self) -> String {
        match self.open() {
            Err(Error::ComponentRefused { component, reason }) => {
                assert!(component.contains("component.wasm"), "{component}");
                reason
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the component was accepted"),
        }
    }
}

/// A core module whose `leave` is `leave`, a function body, and whose other
/// functions trap.
fn module(leave: &str) -> String {
    let interface = "tidegate:community/membership@0.1.0";
    format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (func (export "{interface}#leave") (param i64 i32 i32 i64 i64) (result i32) {leave})
            (func (export "{interface}#rejoin") (param i64 i32 i32 i64) (result i32) unreachable)
            (func (export "{interface}#status") (param i64 i32 i32 i32) (result i32) unreachable)
            (func (export "{interface}#signal") (param i64 i32 i32 i64) (result i32) (i32.const 3))
            (func (export "{interface}#serialize-membership")
                (param i64 i32 i32 i64) (result i32) unreachable)
            (func (export "{interface}#deserialize-membership")
                (param i64 i32 i32) (result i32) unreachable)
            (func (export "{interface}#restore")
                (param i32 i32 i32 i32 i32 i32) (result i32) unreachable))"#
    )
}

#[test]
fn refuses_what_is_no_component() {
    let whole = tidegate::SHIPPED_COMPONENT;
    let core_module = wat::parse_str("(module)").unwrap();
    for (bytes, reason) in [
        (&b""[..], "it is not WebAssembly in binary form"),
        (b"(component)", "it is not WebAssembly in binary form"),
        (b"\0asm", "it is no valid WebAssembly component"),
        (
            &whole[..whole.len() / 2],
            "it is no valid WebAssembly component",
        ),
        (&core_module, "it is no valid WebAssembly component"),
    ] {
        let refusal = Setting::new(bytes).refusal();
        assert!(refusal.starts_with(reason), "{refusal}");
    }
}

#[test]
fn names_the_file_that_is_missing() {
    let setting = Setting::new(b"");
    std::fs::remove_file(setting.folder.path().join("component.wasm")).unwrap();
    assert!(setting.refusal().starts_with("it can't be read"));
}

#[test]
fn refuses_a_component_with_imports_and_names_them() {
    let component = from_text_with_contract(
        r#"(module
            (import "host:clock/now" "now" (func (result i64)))
            (func (export "_initialize") (drop (call 0))))"#,
        "with-import",
        |contract| {
            *contract = "package host:clock;
                interface now { now: func() -> u64; }
                world with-import { import now; }"
                .to_owned();
        },
    );
    assert_eq!(
        Setting::new(&component).refusal(),
        "it imports `host:clock/now`, and a component of rules may import nothing"
    );
}

#[test]
fn refuses_another_version_of_the_interface_and_names_both() {
    let component = from_text_with_contract(
        &module("unreachable").replace("@0.1.0", "@0.2.0"),
        "membership-component",
        |contract| *contract = contract.replacen("@0.1.0;", "@0.2.0;", 1),
    );
    assert_eq!(
        Setting::new(&component).refusal(),
        "it exports `tidegate:community/membership@0.2.0`, and this host needs `tidegate:community/membership@0.1.0`"
    );
}

#[test]
fn refuses_a_component_without_the_interface() {
    let component = from_text_with_contract("(module)", "empty", |contract| {
        *contract = "package host:empty; world empty {}".to_owned();
    });
    assert_eq!(
        Setting::new(&component).refusal(),
        "it does not export `tidegate:community/membership@0.1.0`"
    );
}

#[test]
fn refuses_an_interface_with_a_function_of_another_type() {
    let component = from_text_with_contract(
        &module("unreachable").replace("(param i64 i32 i32 i64 i64)", "(param i64 i32 i32 i64)"),
        "membership-component",
        |contract| {
            let typed = "leave: func(current: community-membership, now: timestamp-ns)";
            assert!(contract.contains(typed));
            *contract = contract.replace(typed, "leave: func(current: community-membership)");
        },
    );
    let refusal = Setting::new(&component).refusal();
    assert!(
        refusal.contains("is not that of version 0.1.0"),
        "{refusal}"
    );
}

#[test]
fn a_leave_that_the_component_fails_shuts_the_gate_and_says_so() {
    for (leave, reason) in [
        ("unreachable", "unreachable"),
        (
            "(loop (br 0)) unreachable",
            "did not return within its limit",
        ),
        ("(i32.const 0xfffffff0)", "out of bounds"),
        // 20 MiB in pages of 64 KiB; growing gives -1.
        (
            "(if (i32.eq (memory.grow (i32.const 320)) (i32.const -1)) (then unreachable))
            (i32.const 0)",
            "unreachable",
        ),
        // The first byte of the status is neither of the two.
        (
            "(i32.store8 (i32.const 8) (i32.const 7)) (i32.const 0)",
            "unexpected discriminant",
        ),
    ] {
        let db = Setting::new(&from_text(&module(leave))).open().unwrap();
        assert!(!signal(&db, USER, 1).gated);

        let error = db.leave_community_layer(USER).unwrap_err();
        let Error::ComponentFailed {
            function,
            reason: found,
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*function, "leave");
        assert!(found.contains(reason), "{found}");
        assert!(
            signal(&db, USER, 1).gated,
            "the leave is in force in this process"
        );
        assert!(matches!(
            db.community_layer_status(USER),
            Err(Error::NotDurable { user_id: USER, .. })
        ));
        assert!(!signal(&db, USER + 1, 1).gated, "others are not affected");

        // The next call gets a new instance, and fails in its own right.
        assert!(matches!(
            db.leave_community_layer(USER + 1),
            Err(Error::ComponentFailed { .. })
        ));
    }
}

#[test]
fn a_membership_of_another_user_is_not_taken() {
    // The result at address 0: user 7, left, no instant.
    let leave = "(i64.store (i32.const 0) (i64.const 7))
        (i32.store8 (i32.const 8) (i32.const 1))
        (i32.const 0)";
    let db = Setting::new(&from_text(&module(leave))).open().unwrap();
    let error = db.leave_community_layer(USER).unwrap_err().to_string();
    assert!(
        error.contains("a membership of user 7 for user 42"),
        "{error}"
    );
    assert!(signal(&db, USER, 1).gated);
}

#[test]
fn a_store_goes_on_with_a_component_that_works() {
    let setting = Setting::new(&from_text(&module("unreachable")));
    let db = setting.open().unwrap();
    db.leave_community_layer(USER).unwrap_err();
    drop(db);

    let db = TidalDb::open(setting.store()).unwrap();
    assert_eq!(
        db.community_layer_status(USER).unwrap().status,
        MembershipStatus::Active,
        "the leave was never acknowledged"
    );
    db.leave_community_layer(USER).unwrap();
    assert!(signal(&db, USER, 1).gated);
}
