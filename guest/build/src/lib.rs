//! What ties the component to its sources: a digest of them, recorded in the
//! component, so that a committed component that is stale can be told.
//!
//! Building is left to the binary of this package.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};

/// The custom section of the component that holds [`sources_digest`].
pub const DIGEST_SECTION: &str = "tidegate:sources-sha256";

/// The most that the finished component may weigh.
pub const MAX_COMPONENT_BYTES: usize = 32 * 1024;

/// The root of the workspace that this package was built in.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The SHA-256, in hexadecimal, of all that the component is made from: the
/// guest's manifest and code, the contract, and the toolchain's pin. Each file
/// counts with its path from `root`, the lengths of both, and its bytes, in the
/// order of the paths.
///
/// # Errors
///
/// If a file cannot be read.
pub fn sources_digest(root: &Path) -> Result<String> {
    let mut paths = vec![
        PathBuf::from("guest/Cargo.toml"),
        PathBuf::from("rust-toolchain.toml"),
    ];
    paths.extend(files_in(root, "guest/src")?);
    paths.extend(files_in(root, "wit")?);
    paths.sort();

    let mut hasher = Sha256::new();
    for path in paths {
        let content =
            fs::read(root.join(&path)).with_context(|| format!("read {}", path.display()))?;
        let name = path.to_string_lossy().replace('\\', "/");
        for part in [name.as_bytes(), &content] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let mut digest = String::new();
    for byte in hasher.finalize() {
        write!(digest, "{byte:02x}")?;
    }
    Ok(digest)
}

fn files_in(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    fs::read_dir(root.join(folder))
        .with_context(|| format!("list {folder}"))?
        .map(|entry| Ok(Path::new(folder).join(entry?.file_name())))
        .collect()
}

/// The digest that a component records, or `None` if it records none.
///
/// # Errors
///
/// If `component` is no well-formed WebAssembly.
pub fn recorded_digest(component: &[u8]) -> Result<Option<String>> {
    for payload in Parser::new(0).parse_all(component) {
        if let Payload::CustomSection(section) = payload?
            && section.name() == DIGEST_SECTION
        {
            return Ok(Some(String::from_utf8(section.data().to_vec())?));
        }
    }
    Ok(None)
}
