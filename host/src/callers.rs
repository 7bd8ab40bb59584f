//! Callers: programs that use a community layer without being its host. A caller is a
//! component that imports `community-layer` and exports `run`; it may be written in any
//! language, and nothing it does is trusted.
//!
//! - [`permission`]: which functions and which users it was given
//! - `bindings`: the contract's types and the host's, and what each function does
//! - `limits`: how much memory and output it may use
//! - `surroundings`: what it gets of WASI
//!
//! wasmtime is named here and in the modules `rules` and `sandbox`. What a call does is left to
//! [`TidalDb`].

mod bindings;
mod limits;
pub mod permission;
mod surroundings;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

use crate::db::TidalDb;
use crate::error::{Error, Result};
use crate::sandbox::{self, CONTRACT_VERSION};
use bindings::CallerPre;
use limits::Budget;
use permission::Permission;
use surroundings::Session;

pub use limits::Limits;

/// The package whose interface a caller imports, without its version.
const PACKAGE: &str = "tidegate:community/";

/// How long a caller executes, calls to the host included, until it is seen whether its
/// time is up.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// How many bytes one call of a caller may hand to the host: more than any that succeeds.
const MAX_CALL_BYTES: usize = 1 << 20;

/// A loaded caller, which may be run any number of times.
///
/// ```no_run
/// use std::sync::Arc;
/// use tidegate::TidalDb;
/// use tidegate::callers::permission::{Function, Permission};
/// use tidegate::callers::{Caller, Limits, Streams};
///
/// let db = Arc::new(TidalDb::open("a folder")?);
/// let caller = Caller::load(&std::fs::read("caller.wasm")?, "`caller.wasm`", None)?;
/// let permission = Permission::to([Function::Status, Function::Leave]).for_users([42]);
/// match caller.run(&db, permission, &Limits::default(), Streams::of_process(), &[])? {
///     Ok(outcome) => println!("{outcome}"),
///     Err(reason) => eprintln!("{reason}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Caller {
    name: String,
    engine: Engine,
    prepared: CallerPre<Session>,
}

/// Where a caller's standard output and error go. While one of them can't be written to,
/// because nobody reads it, the run waits, for longer than its time if need be.
pub struct Streams {
    /// Its standard output.
    pub stdout: Box<dyn Write + Send>,
    /// Its standard error.
    pub stderr: Box<dyn Write + Send>,
}

impl Streams {
    /// Those of this process.
    pub fn of_process() -> Self {
        Streams {
            stdout: Box::new(std::io::stdout()),
            stderr: Box::new(std::io::stderr()),
        }
    }
}

impl Caller {
    /// Compiles and checks a caller; `name` says in errors which one. Compiled code is
    /// kept in `cache_folder`, an absolute path, if there is one, and taken from there the
    /// next time.
    ///
    /// [`Error::CallerRefused`] if it is no component, lacks `run`, or imports what this
    /// host does not offer, such as another version of the interface.
    pub fn load(bytes: &[u8], name: &str, cache_folder: Option<&Path>) -> Result<Self> {
        let refused = |reason: String| Error::CallerRefused {
            caller: name.to_owned(),
            reason,
        };
        let engine = sandbox::engine(Config::epoch_interruption, cache_folder)
            .map_err(|error| refused(format!("{error:#}")))?;
        let component = sandbox::compile(&engine, bytes).map_err(refused)?;
        check_version(&component, &engine).map_err(refused)?;
        let prepared = linker(&engine)
            .and_then(|linker| linker.instantiate_pre(&component))
            .map_err(|error| {
                refused(format!("it needs what this host does not offer: {error:#}"))
            })?;
        let prepared = CallerPre::new(prepared).map_err(|error| {
            refused(format!(
                "it does not export `run: func(args: list<string>) -> result<string, string>` ({error:#})"
            ))
        })?;
        Ok(Caller {
            name: name.to_owned(),
            engine,
            prepared,
        })
    }

    /// Runs the caller once: calls its `run` with `args` and returns what that returned.
    /// Not from async code, which it would block.
    ///
    /// It reaches nothing but the functions and users of `permission`; others answer with
    /// the contract's error `access-denied`. Of WASI it gets `streams`, random numbers and
    /// clocks that are exact to a millisecond, and no files, no network, no environment.
    ///
    /// [`Error::CallerFailed`] if it traps or breaks one of the `limits`. What it had done
    /// by then stays done, and is whole.
    pub fn run(
        &self,
        db: &Arc<TidalDb>,
        permission: Permission,
        limits: &Limits,
        streams: Streams,
        args: &[String],
    ) -> Result<std::result::Result<String, String>> {
        let session = Session::new(Arc::clone(db), permission, limits, streams);
        let mut store = Store::new(&self.engine, session);
        let outcome = within(&self.engine, limits.time, self.call(&mut store, args));
        let failed = |reason: String| Error::CallerFailed {
            caller: self.name.clone(),
            reason,
        };
        match outcome {
            None => Err(failed(format!("it did not end within {:?}", limits.time))),
            Some(Err(error)) => Err(failed(reason(&error, store.data().budget()))),
            Some(Ok(Ok(text) | Err(text))) if text.len() > limits.output_bytes => Err(failed(
                format!("it returned more than {} bytes", limits.output_bytes),
            )),
            Some(Ok(returned)) => Ok(returned),
        }
    }

    async fn call(
        &self,
        store: &mut Store<Session>,
        args: &[String],
    ) -> wasmtime::Result<std::result::Result<String, String>> {
        store.limiter(Session::budget_mut);
        store.set_hostcall_fuel(MAX_CALL_BYTES);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let caller = self.prepared.instantiate_async(&mut *store).await?;
        caller.call_run(store, args).await
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// What `work` on this engine comes to; `None` if it takes longer than `time`.
fn within<R>(
    engine: &Engine,
    time: Duration,
    work: impl Future<Output = wasmtime::Result<R>>,
) -> Option<wasmtime::Result<R>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Some(Err(error.into())),
    };
    let (ended, is_ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // Ends with the other end of the channel, also when the work panics.
        scope.spawn(move || {
            while is_ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                engine.increment_epoch();
            }
        });
        let _ended = ended;
        runtime
            .block_on(async { tokio::time::timeout(time, work).await })
            .ok()
    })
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<Session>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    bindings::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// Tells a caller that was built against another version of the contract, which the
/// linker would only call missing.
fn check_version(component: &Component, engine: &Engine) -> Result<(), String> {
    let component_type = component.component_type();
    let is_other = |name: &&str| {
        name.starts_with(PACKAGE)
            && name.split_once('@').map(|(_, version)| version) != Some(CONTRACT_VERSION)
    };
    let mut imports = component_type.imports(engine).map(|(name, _)| name);
    match imports.find(is_other) {
        None => Ok(()),
        Some(other) => Err(format!(
            "it imports `{other}`, and this host offers version {CONTRACT_VERSION} of that package"
        )),
    }
}

/// What happened in a run, without the addresses of a backtrace.
fn reason(error: &wasmtime::Error, budget: &Budget) -> String {
    let reason = match error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        Some(wasmtime_wasi::I32Exit(status)) => {
            format!("it ended with exit status {status} instead of returning from `run`")
        }
        None => sandbox::reason(error),
    };
    if budget.is_exceeded() {
        let bytes = budget.bytes();
        return format!("it asked for more than {bytes} bytes of memory ({reason})");
    }
    reason
}
