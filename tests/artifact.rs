//! `guest/membership.wasm` as an artifact: made from the sources that lie beside it,
//! small, and without imports.

use build_membership::{MAX_COMPONENT_BYTES, recorded_digest, sources_digest};
use tidegate::{SHIPPED_COMPONENT, inspect_component};

use crate::support::repository;

#[test]
fn the_component_is_made_from_the_sources_beside_it() {
    assert_eq!(
        recorded_digest(SHIPPED_COMPONENT).unwrap(),
        Some(sources_digest(&repository()).unwrap()),
        "guest/membership.wasm is stale; build it with: cargo build-membership"
    );
}

#[test]
fn another_source_has_another_digest() {
    let copy = tempfile::tempdir().unwrap();
    for folder in ["guest/src", "wit"] {
        std::fs::create_dir_all(copy.path().join(folder)).unwrap();
        for file in std::fs::read_dir(repository().join(folder)).unwrap() {
            let name = file.unwrap().file_name();
            let from = repository().join(folder).join(&name);
            std::fs::copy(from, copy.path().join(folder).join(&name)).unwrap();
        }
    }
    for file in ["guest/Cargo.toml", "rust-toolchain.toml"] {
        std::fs::copy(repository().join(file), copy.path().join(file)).unwrap();
    }
    let original = sources_digest(&repository()).unwrap();
    assert_eq!(sources_digest(copy.path()).unwrap(), original);

    let contract = copy.path().join("wit/types.wit");
    let text = std::fs::read_to_string(&contract).unwrap();
    std::fs::write(&contract, text + "\n").unwrap();
    assert_ne!(sources_digest(copy.path()).unwrap(), original);
}

#[test]
fn the_component_is_small_and_imports_nothing() {
    assert!(SHIPPED_COMPONENT.len() <= MAX_COMPONENT_BYTES);
    let found = inspect_component(SHIPPED_COMPONENT).unwrap();
    assert!(found.imports.is_empty(), "{:?}", found.imports);
    assert_eq!(found.refused, None);
    let functions = [
        "leave",
        "rejoin",
        "status",
        "signal",
        "serialize-membership",
        "deserialize-membership",
        "restore",
    ];
    for function in functions {
        let name = format!("tidegate:community/membership@0.1.0#{function}");
        assert!(found.exports.contains(&name), "{name}");
    }
}
