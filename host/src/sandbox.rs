//! What loading a component takes, of rules or of a caller: an engine that can stop it,
//! compiled code kept in a folder, and errors without backtraces.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Cache, CacheConfig, Config, Engine, Trap};

/// The version of the contract that this host speaks.
pub(crate) const CONTRACT_VERSION: &str = "0.1.0";

/// How what a component executes is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// By instructions, which is the same on every machine.
    Fuel,
    /// By time, whatever it is spent on: the engine's epoch goes on from outside.
    Epochs,
}

/// An engine. Compiled code is kept in `cache_folder`, an absolute path, if there is one.
pub(crate) fn engine(bound: Bound, cache_folder: Option<&Path>) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.concurrency_support(false);
    match bound {
        Bound::Fuel => config.consume_fuel(true),
        Bound::Epochs => config.epoch_interruption(true),
    };
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
