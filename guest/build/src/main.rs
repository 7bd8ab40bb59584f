//! Builds the membership component: compiles `guest/` for wasm32-unknown-unknown,
//! makes a component of the module, records the digest of the sources in it,
//! checks it, and writes it to the path given, by default `guest/membership.wasm`.

use std::borrow::Cow;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use build_membership::{DIGEST_SECTION, MAX_COMPONENT_BYTES, sources_digest, workspace_root};
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{Parser, Payload, Validator};
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

fn main() -> Result<()> {
    let root = workspace_root().canonicalize()?;
    let output = env::args_os()
        .nth(1)
        .map_or_else(|| root.join("guest/membership.wasm"), PathBuf::from);

    let module = compile(&root)?;
    let component = encode(&module, &sources_digest(&root)?)?;
    check(&component)?;
    fs::write(&output, &component).with_context(|| format!("write {}", output.display()))?;
    println!("{}: {} bytes", output.display(), component.len());
    Ok(())
}

fn compile(root: &Path) -> Result<Vec<u8>> {
    let target_dir = root.join("target");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--package", "tidegate-membership", "--lib"])
        .args(["--profile", "membership", "--target", TARGET, "--quiet"])
        .arg("--target-dir")
        .arg(&target_dir)
        // Flags meant for the machine's own target would change the component.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .context("start cargo")?;
    if !status.success() {
        bail!("the guest does not compile; if its target is missing: rustup target add {TARGET}");
    }
    let path = target_dir
        .join(TARGET)
        .join("membership/tidegate_membership.wasm");
    fs::read(&path).with_context(|| format!("read {}", path.display()))
}

fn encode(module: &[u8], sources_digest: &str) -> Result<Vec<u8>> {
    let mut component = ComponentEncoder::default()
        .module(module)?
        .validate(true)
        .encode()?;
    CustomSection {
        name: Cow::Borrowed(DIGEST_SECTION),
        data: Cow::Borrowed(sources_digest.as_bytes()),
    }
    .append_to_component(&mut component);
    Ok(component)
}

fn check(component: &[u8]) -> Result<()> {
    Validator::new()
        .validate_all(component)
        .context("the component is not valid")?;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            // The outermost level comes first; what follows is nested in it.
            Payload::ComponentImportSection(imports) => {
                if let Some(import) = imports.into_iter().next() {
                    bail!(
                        "the component imports `{}`; it may import nothing",
                        import?.name.name
                    );
                }
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => break,
            _ => {}
        }
    }
    ensure!(
        component.len() <= MAX_COMPONENT_BYTES,
        "the component has {} bytes; the limit is {MAX_COMPONENT_BYTES}",
        component.len()
    );
    Ok(())
}
