//! Components made from text.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::repository;

/// A component of rules from a core module in text form that exports the
/// interface's functions under their canonical names.
pub(crate) fn from_text(module: &str) -> Vec<u8> {
    from_text_with_contract(module, "membership-component", |_| {})
}

/// The same for another world, or for a contract that `change` has altered.
pub(crate) fn from_text_with_contract(
    module: &str,
    world: &str,
    change: impl FnOnce(&mut String),
) -> Vec<u8> {
    let mut contract = String::new();
    for file in ["world", "types", "membership", "community-layer"] {
        let path = repository().join("wit").join(file).with_extension("wit");
        contract.push_str(&std::fs::read_to_string(path).unwrap());
    }
    change(&mut contract);
    let mut resolve = Resolve::default();
    let package = resolve.push_str("contract.wit", &contract).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = wat::parse_str(module).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default();
    encoder
        .module(&module)
        .unwrap()
        .validate(true)
        .encode()
        .unwrap()
}
