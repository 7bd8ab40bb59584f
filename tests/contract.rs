//! The contract in `wit/` as a package that others depend on: it is whole, every part of it
//! is described, and its version says when it changes.
//!
//! `contract/0.1.0.wit` is the package as one file without its texts, as it was published.
//! A change to the interface needs another version, and a rendering of that.

use wit_component::{DecodedWasm, WitPrinter};
use wit_parser::{PackageId, Resolve, TypeDefKind};

use crate::support::repository;

fn contract() -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(repository().join("wit")).unwrap();
    (resolve, package)
}

/// The package as one file without its texts.
fn rendering(resolve: &Resolve, package: PackageId) -> String {
    let mut printer = WitPrinter::default();
    printer.emit_docs(false);
    printer.print(resolve, package, &[]).unwrap();
    String::from(printer.output)
}

#[test]
fn the_interface_is_the_one_that_its_version_was_published_with() {
    let (resolve, package) = contract();
    let version = resolve.packages[package].name.version.as_ref().unwrap();
    let published = repository().join(format!("tests/contract/{version}.wit"));
    let found = rendering(&resolve, package);
    if std::env::var_os("TIDEGATE_PUBLISH_CONTRACT").is_some() && !published.exists() {
        std::fs::write(&published, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&published).unwrap_or_default();
    assert_eq!(
        found, expected,
        "the interface has changed, and its version {version} has not; a new version is \
        rendered by this test with TIDEGATE_PUBLISH_CONTRACT=1"
    );
}

/// Before 1.0 the minor number is the one that says that something is no longer compatible.
#[test]
fn versions_that_count_as_compatible_have_the_same_interface() {
    let mut interfaces = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(repository().join("tests/contract")).unwrap() {
        let published = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (package, interface) = published.split_once('\n').unwrap();
        let (compatible, _patch) = package.rsplit_once('.').unwrap();
        let is_since = |line: &&str| line.trim_start().starts_with("@since");
        let interface: Vec<String> = interface
            .lines()
            .filter(|line| !is_since(line))
            .map(str::to_owned)
            .collect();
        let known = interfaces
            .entry(compatible.to_owned())
            .or_insert_with(|| interface.clone());
        assert_eq!(*known, interface, "{package}");
    }
    assert!(!interfaces.is_empty());
}

#[test]
fn a_change_of_the_interface_is_seen() {
    let (resolve, package) = contract();
    let published = rendering(&resolve, package);
    let changed = published.replace("item-id: u64", "item-id: u32");
    assert_ne!(changed, published);
    let mut other = Resolve::default();
    let package = other.push_str("changed.wit", &changed).unwrap();
    assert_ne!(rendering(&other, package), published);
}

/// What `wasm-tools component wit --wasm` does.
#[test]
fn the_package_can_be_published_as_a_component() {
    let (resolve, package) = contract();
    let encoded = wit_component::encode(&resolve, package).unwrap();
    let DecodedWasm::WitPackage(decoded, package_again) = wit_component::decode(&encoded).unwrap()
    else {
        panic!("it is not a package");
    };
    assert_eq!(
        rendering(&decoded, package_again),
        rendering(&resolve, package)
    );
}

#[test]
fn every_part_of_the_contract_is_described() {
    let (resolve, package) = contract();
    let package = &resolve.packages[package];
    let mut parts = vec![("the package".to_owned(), &package.docs)];
    for (name, world) in &package.worlds {
        parts.push((format!("world {name}"), &resolve.worlds[*world].docs));
    }
    for (interface_name, interface) in &package.interfaces {
        let interface = &resolve.interfaces[*interface];
        parts.push((interface_name.clone(), &interface.docs));
        for (name, function) in &interface.functions {
            parts.push((format!("{interface_name}.{name}"), &function.docs));
        }
        for (name, type_id) in &interface.types {
            let definition = &resolve.types[*type_id];
            let is_used_from_elsewhere =
                matches!(definition.kind, TypeDefKind::Type(wit_parser::Type::Id(_)));
            if !is_used_from_elsewhere {
                parts.push((format!("{interface_name}.{name}"), &definition.docs));
            }
        }
    }
    assert!(parts.len() > 20);
    for (name, docs) in parts {
        assert!(docs.contents.is_some(), "{name} is not described");
    }
}
