//! What loading a component takes, of rules or of a caller: an engine that can stop it,
//! compiled code kept in a folder, and errors without backtraces.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Cache, CacheConfig, Config, Engine, Trap};

/// The version of the contract that this host speaks.
pub(crate) const CONTRACT_VERSION: &str = "0.1.0";

/// An engine. `bound` turns on what stops a component: [`Config::consume_fuel`], which counts
/// instructions, or [`Config::epoch_interruption`], which goes by time, whatever it is spent
/// on. Compiled code is kept in `cache_folder`, an absolute path, if there is one.
pub(crate) fn engine(
    bound: fn(&mut Config, bool) -> &mut Config,
    cache_folder: Option<&Path>,
) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.concurrency_support(false);
    bound(&mut config, true);
    if let Some(folder) = cache_folder {
        let mut cache = CacheConfig::new();
        cache.with_directory(folder);
        config.cache(Some(Cache::new(cache)?));
    }
    Engine::new(&config)
}

/// Compiles a component; an error says why the bytes are none.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, String> {
    if !bytes.starts_with(b"\0asm") {
        return Err("it is not WebAssembly in binary form".to_owned());
    }
    Component::from_binary(engine, bytes)
        .map_err(|error| format!("it is no valid WebAssembly component ({error:#})"))
}

/// What happened in a call, without the addresses of a backtrace.
pub(crate) fn reason(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    }
}
