//! The component in the wasmtime CLI: each export called by its bare name.

use std::process::Command;

use crate::support::{repository, skip};

const HOW_TO_RUN: &str = "cargo install wasmtime-cli --version 48.0.8 --locked";

#[test]
fn every_export_answers_in_the_wasmtime_cli() {
    let version = Command::new("wasmtime").arg("--version").output();
    let version = version.map(|output| String::from_utf8(output.stdout).unwrap());
    if !version.is_ok_and(|version| version.starts_with("wasmtime 48.")) {
        return skip("the wasmtime CLI 48 is not on the PATH", HOW_TO_RUN);
    }
    let never_left = "{user-id: 42, status: active, left-at-ns: none}";
    let left = "{user-id: 42, status: left, left-at-ns: some(1700000000000000000)}";
    // 1700000000000000000 is 0x17979cfe362a0000: least significant byte first.
    let bytes = "[1, 0, 0, 42, 54, 254, 156, 151, 23]";
    let restored = format!("{{membership: {left}, fan-out: {{}}}}");
    for (call, answer) in [
        (
            format!("leave({never_left}, 1700000000000000000)"),
            left.to_owned(),
        ),
        (
            "leave({user-id: 18446744073709551615, status: active}, 9007199254740993)".to_owned(),
            "{user-id: 18446744073709551615, status: left, left-at-ns: some(9007199254740993)}"
                .to_owned(),
        ),
        (
            format!("rejoin({left})"),
            left.replace("status: left", "status: active"),
        ),
        ("status(42, none)".to_owned(), format!("ok({never_left})")),
        (format!("status(42, some({bytes}))"), format!("ok({left})")),
        (
            "status(42, some([1, 2, 3]))".to_owned(),
            r#"err({reason: "9 bytes expected, 3 found"})"#.to_owned(),
        ),
        (
            format!("signal({never_left})"),
            "{cohort-attribution, community-forwarding}".to_owned(),
        ),
        (format!("signal({left})"), "{}".to_owned()),
        (format!("serialize-membership({left})"), bytes.to_owned()),
        (
            format!("deserialize-membership(42, {bytes})"),
            format!("some({left})"),
        ),
        (
            "deserialize-membership(42, [])".to_owned(),
            "none".to_owned(),
        ),
        (
            format!("restore([42, 7], [9, 1], {})", bytes.replace(']', ", 0]")),
            format!("[some({restored}), none]"),
        ),
    ] {
        let output = Command::new("wasmtime")
            .args(["run", "--invoke", &call])
            .arg(repository().join("guest/membership.wasm"))
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{call}: {complaint}");
        // An absent instant may be printed or left out.
        assert_eq!(
            without_absent(printed.trim()),
            without_absent(&answer),
            "{call}"
        );
    }
}

fn without_absent(value: &str) -> String {
    value.replace(", left-at-ns: none", "")
}
