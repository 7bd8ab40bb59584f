//! A component in its sandbox: compiled, checked, instantiated, and called within
//! bounds of time and memory. What it is called for is left to the parent module.

use std::path::Path;

use parking_lot::Mutex;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store, StoreLimits, StoreLimitsBuilder, Trap};

use super::bindings::{Membership, MembershipComponent, MembershipComponentPre};
use crate::error::{Error, Result};
use crate::sandbox::{self, CONTRACT_VERSION};

/// What one call may execute, in wasmtime's units of fuel, about one for each
/// instruction: a few tens of milliseconds. The largest call of the shipped
/// component, a restore of 4,096 records, takes less than a hundredth.
const FUEL_PER_CALL: u64 = 50_000_000;

/// What the component's memory may grow to.
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// The interface that a component has to export, without its version.
const INTERFACE: &str = "tidegate:community/membership";

/// A loaded component and the instance that answers at present.
pub(super) struct Sandbox {
    engine: Engine,
    prepared: MembershipComponentPre<StoreLimits>,
    /// One instance serves all calls, one at a time: a call takes a fraction of a
    /// microsecond, and only transitions and start-up call. `None` after a failed
    /// call, because an instance can't be entered again after a trap.
    instance: Mutex<Option<Instance>>,
}

struct Instance {
    store: Store<StoreLimits>,
    exports: MembershipComponent,
}

impl Sandbox {
    /// Compiles and checks a component; `name` says in errors which one. Compiled
    /// code is kept in `cache_folder`, if there is one, and taken from there the
    /// next time.
    pub(super) fn load(bytes: &[u8], name: &str, cache_folder: Option<&Path>) -> Result<Self> {
        let refused = |reason: String| Error::ComponentRefused {
            component: name.to_owned(),
            reason,
        };
        let unfit = |error: wasmtime::Error| {
            refused(format!(
                "its `{INTERFACE}` is not that of version {CONTRACT_VERSION} ({error:#})"
            ))
        };
        let engine = sandbox::engine(Config::consume_fuel, cache_folder)
            .map_err(|error| refused(format!("{error:#}")))?;
        let component = sandbox::compile(&engine, bytes).map_err(refused)?;
        check_interface(&component, &engine).map_err(refused)?;
        let prepared = Linker::new(&engine)
            .instantiate_pre(&component)
            .and_then(MembershipComponentPre::new)
            .map_err(unfit)?;
        let sandbox = Sandbox {
            engine,
            prepared,
            instance: Mutex::new(None),
        };
        // Types of functions are compared when an instance is made.
        let instance = sandbox.instantiate().map_err(unfit)?;
        *sandbox.instance.lock() = Some(instance);
        Ok(sandbox)
    }

    /// Calls one function of the component. After an error the next call gets a
    /// new instance.
    pub(super) fn call<R>(
        &self,
        function: &'static str,
        call: impl FnOnce(&Membership, &mut Store<StoreLimits>) -> wasmtime::Result<R>,
    ) -> Result<R> {
        let mut slot = self.instance.lock();
        let existing = slot.take().map_or_else(|| self.instantiate(), Ok);
        let outcome = existing.and_then(|mut instance| {
            instance.store.set_fuel(FUEL_PER_CALL)?;
            let exports = instance.exports.tidegate_community_membership();
            let result = call(exports, &mut instance.store)?;
            Ok((result, instance))
        });
        match outcome {
            Ok((result, instance)) => {
                *slot = Some(instance);
                Ok(result)
            }
            Err(error) => Err(Error::ComponentFailed {
                function,
                reason: reason(&error),
            }),
        }
    }

    fn instantiate(&self) -> wasmtime::Result<Instance> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MAX_MEMORY_BYTES)
            // Each of these is counted by itself; a component of rules needs few.
            .memories(1)
            .tables(4)
            .table_elements(10_000)
            .instances(8)
            .build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        // Instantiation may run the component's own start code.
        store.set_fuel(FUEL_PER_CALL)?;
        let exports = self.prepared.instantiate(&mut store)?;
        Ok(Instance { store, exports })
    }
}

fn check_interface(component: &Component, engine: &Engine) -> Result<(), String> {
    let component_type = component.component_type();
    let imports: Vec<String> = component_type
        .imports(engine)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !imports.is_empty() {
        return Err(format!(
            "it imports {}, and a component of rules may import nothing",
            imports.join(", ")
        ));
    }
    let wanted = format!("{INTERFACE}@{CONTRACT_VERSION}");
    let exports: Vec<&str> = component_type
        .exports(engine)
        .map(|(name, _)| name)
        .collect();
    if exports.contains(&wanted.as_str()) {
        return Ok(());
    }
    Err(
        match exports.iter().find(|name| name.starts_with(INTERFACE)) {
            Some(other) => format!("it exports `{other}`, and this host needs `{wanted}`"),
            None => format!("it does not export `{wanted}`"),
        },
    )
}

/// What happened in a call.
fn reason(error: &wasmtime::Error) -> String {
    if let Some(Trap::OutOfFuel) = error.downcast_ref() {
        return format!("it did not return within its limit of {FUEL_PER_CALL} instructions");
    }
    sandbox::reason(error)
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}
