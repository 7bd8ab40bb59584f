//! What a component is, seen from outside.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::{Config, Engine};

use super::component::Sandbox;
use crate::error::{Error, Result};
use crate::sandbox;

/// What [`inspect_component`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The SHA-256 of the component's bytes, in hexadecimal.
    pub sha256: String,
    /// The names of its imports.
    pub imports: Vec<String>,
    /// The names of its exports; a function of an exported interface is
    /// `interface#function`.
    pub exports: Vec<String>,
    /// Why a host would refuse it as a component of rules; `None` if it would not.
    pub refused: Option<String>,
}

/// Reads a component and says what it is.
///
/// [`Error::ComponentRefused`] if the bytes are no component at all.
///
/// ```
/// let found = tidegate::inspect_component(tidegate::SHIPPED_COMPONENT)?;
/// assert!(found.imports.is_empty());
/// assert_eq!(found.refused, None);
/// # Ok::<(), tidegate::Error>(())
/// ```
pub fn inspect_component(bytes: &[u8]) -> Result<Inspection> {
    const NAME: &str = "to inspect";
    let refused = |reason: String| Error::ComponentRefused {
        component: NAME.to_owned(),
        reason,
    };
    let engine = sandbox::engine(Config::consume_fuel, None)
        .map_err(|error| refused(format!("{error:#}")))?;
    let component = sandbox::compile(&engine, bytes).map_err(refused)?;
    let component_type = component.component_type();
    let mut exports = Vec::new();
    for (name, item) in component_type.exports(&engine) {
        exports.extend(names_of(name, &item.ty, &engine));
    }
    Ok(Inspection {
        sha256: sha256(bytes),
        imports: component_type
            .imports(&engine)
            .map(|(name, _)| name.to_owned())
            .collect(),
        exports,
        refused: match Sandbox::load(bytes, NAME, None) {
            Err(Error::ComponentRefused { reason, .. }) => Some(reason),
            _ => None,
        },
    })
}

/// The name of an export, or those of the functions in it if it is an interface
/// that has some.
fn names_of(name: &str, item: &ComponentItem, engine: &Engine) -> Vec<String> {
    let functions: Vec<String> = match item {
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)))
            .map(|(function, _)| format!("{name}#{function}"))
            .collect(),
        _ => Vec::new(),
    };
    if functions.is_empty() {
        vec![name.to_owned()]
    } else {
        functions
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
