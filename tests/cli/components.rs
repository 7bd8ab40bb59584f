//! `component inspect`, and components that are refused.

use sha2::{Digest as _, Sha256};

use crate::support::program::Program;
use crate::support::repository;

fn shipped() -> Vec<u8> {
    std::fs::read(repository().join("guest/membership.wasm")).unwrap()
}

#[test]
fn inspect_says_what_the_shipped_component_is() {
    let program = Program::new();
    let component = shipped();
    program.write("membership.wasm", &component);
    let built_in = program.json(&["component", "inspect"]);
    let from_file = program.json(&["component", "inspect", "membership.wasm"]);

    let digest = format!("{:x}", Sha256::digest(&component));
    for inspection in [&built_in, &from_file] {
        assert_eq!(inspection["bytes"], component.len());
        assert_eq!(inspection["sha256"], digest);
        assert_eq!(inspection["imports"], serde_json::json!([]));
        assert_eq!(inspection["refused"], serde_json::Value::Null);
        let exports = inspection["exports"].as_array().unwrap();
        for function in [
            "leave",
            "rejoin",
            "status",
            "signal",
            "serialize-membership",
            "deserialize-membership",
            "restore",
        ] {
            let name = format!("tidegate:community/membership@0.1.0#{function}");
            assert!(exports.contains(&name.into()), "{function}");
        }
    }
    assert_eq!(from_file["component"], "membership.wasm");

    let text = program.text(&["component", "inspect"]);
    assert!(
        text.contains(&digest) && text.contains("membership@0.1.0#leave"),
        "{text}"
    );
}

#[test]
fn a_component_from_a_file_serves() {
    let program = Program::new();
    program.write("rules.wasm", shipped());
    program.text(&["--component", "rules.wasm", "leave", "42"]);
    let status = program.json(&["--component", "rules.wasm", "status", "42"]);
    assert_eq!(status["status"], "left");
}

#[test]
fn a_broken_component_is_refused_in_one_line() {
    let program = Program::with_store();
    let component = shipped();
    let mut damaged = component.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    let broken: [(&str, &[u8]); 6] = [
        ("empty.wasm", b""),
        ("text.wasm", b"(component)\n"),
        ("truncated.wasm", &component[..component.len() / 2]),
        ("damaged.wasm", &damaged),
        ("core-module.wasm", b"\0asm\x01\0\0\0"),
        ("no-interface.wasm", b"\0asm\x0d\0\x01\0"),
    ];
    for (file, bytes) in broken {
        program.write(file, bytes);
        program
            .run(&["--component", file, "leave", "42"])
            .fails_saying(&["component", file, "leave out --component"]);
    }
    program
        .run(&["--component", "missing.wasm", "leave", "42"])
        .fails_saying(&["component", "missing.wasm", "No such file"]);
    program
        .run(&["--component", ".", "leave", "42"])
        .fails_saying(&["component", "`.`"]);
    assert_eq!(program.json(&["stats"])["leaves"], 0);
}

#[test]
fn inspect_fails_for_what_could_not_be_used() {
    let program = Program::new();
    program.write("no-interface.wasm", b"\0asm\x0d\0\x01\0");
    let run = program.run(&["--json", "component", "inspect", "no-interface.wasm"]);
    assert_eq!(run.status, Some(1));
    let inspection: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let refused = inspection["refused"].as_str().unwrap();
    assert!(
        refused.contains("tidegate:community/membership@0.1.0"),
        "{refused}"
    );

    program.write("text.wasm", "(component)");
    program
        .run(&["component", "inspect", "text.wasm"])
        .fails_saying(&["text.wasm", "not WebAssembly"]);
    program
        .run(&["component", "inspect", "missing.wasm"])
        .fails_saying(&["missing.wasm"]);
}
