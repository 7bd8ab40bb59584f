//! The shipped component, called directly: on wasmtime with the settings of the host,
//! whose own way to it is not public.

mod bindings {
    #![allow(missing_debug_implementations, unreachable_pub, reason = "generated")]
    #![allow(clippy::pedantic, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "membership-component",
    });
}

use std::path::Path;

use wasmtime::Result;
use wasmtime::component::{Component, Linker};
use wasmtime::{Cache, CacheConfig, Config, Engine, Store, StoreLimits, StoreLimitsBuilder};

pub use bindings::MembershipComponentPre;
pub use bindings::exports::tidegate::community::membership::{
    CommunityMembership, FanOut, Guest as Exports,
};
pub use bindings::exports::tidegate::community::types::MembershipStatus;

/// How many records one call of `restore` carries in the host.
pub const RESTORE_BATCH: u64 = 4096;

/// As in the host, which says why.
const FUEL_PER_CALL: u64 = 50_000_000;
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// An engine, with compiled code kept in a folder if one is named.
pub fn engine(cache_folder: Option<&Path>) -> Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.concurrency_support(false);
    config.consume_fuel(true);
    if let Some(folder) = cache_folder {
        let mut cache = CacheConfig::new();
        cache.with_directory(folder);
        config.cache(Some(Cache::new(cache)?));
    }
    Engine::new(&config)
}

/// Loads the shipped component.
pub fn load(engine: &Engine) -> Result<MembershipComponentPre<StoreLimits>> {
    let component = Component::from_binary(engine, tidegate::SHIPPED_COMPONENT)?;
    let prepared = Linker::new(engine).instantiate_pre(&component)?;
    MembershipComponentPre::new(prepared)
}

/// An instance of the shipped component.
pub struct Instance {
    store: Store<StoreLimits>,
    exports: bindings::MembershipComponent,
}

impl Instance {
    pub fn new(engine: &Engine, prepared: &MembershipComponentPre<StoreLimits>) -> Result<Self> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MAX_MEMORY_BYTES)
            .memories(1)
            .tables(4)
            .table_elements(10_000)
            .instances(8)
            .build();
        let mut store = Store::new(engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL_PER_CALL)?;
        let exports = prepared.instantiate(&mut store)?;
        Ok(Instance { store, exports })
    }

    /// Calls one function of the component, with as much fuel as the host gives.
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&Exports, &mut Store<StoreLimits>) -> Result<R>,
    ) -> Result<R> {
        self.store.set_fuel(FUEL_PER_CALL)?;
        let exports = self.exports.tidegate_community_membership();
        call(exports, &mut self.store)
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}
