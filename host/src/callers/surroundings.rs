//! What a caller gets of WASI: somewhere to write to, within limits, random numbers, and
//! clocks that are no finer than a program needs to show the time or to pause. No files,
//! no network, no environment, no input.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};

use super::Streams;
use super::limits::{Budget, Limits};
use super::permission::Permission;
use crate::db::TidalDb;

/// The step of the clocks.
const RESOLUTION: Duration = Duration::from_millis(1);

/// How many handles of WASI a caller may hold at once.
const MAX_HANDLES: usize = 1_000;

/// How many random bytes one call may ask for.
const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// How much is written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// One run of a caller: whom it talks to, and what it has.
pub(super) struct Session {
    pub(super) db: Arc<TidalDb>,
    pub(super) permission: Permission,
    budget: Budget,
    wasi: WasiCtx,
    handles: ResourceTable,
}

impl Session {
    pub(super) fn new(
        db: Arc<TidalDb>,
        permission: Permission,
        limits: &Limits,
        streams: Streams,
    ) -> Self {
        let left = Arc::new(Mutex::new(limits.output_bytes));
        let output = |sink| Output {
            sink: Arc::new(Mutex::new(sink)),
            left: Arc::clone(&left),
            limit: limits.output_bytes,
        };
        let wasi = WasiCtx::builder()
            .stdout(output(streams.stdout))
            .stderr(output(streams.stderr))
            .wall_clock(CoarseClock::new())
            .monotonic_clock(CoarseClock::new())
            .max_random_size(MAX_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut handles = ResourceTable::new();
        handles.set_max_capacity(MAX_HANDLES);
        Session {
            db,
            permission,
            budget: Budget::new(limits.memory_bytes),
            wasi,
            handles,
        }
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn budget_mut(&mut self) -> &mut dyn wasmtime::ResourceLimiter {
        &mut self.budget
    }
}

impl WasiView for Session {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.handles,
        }
    }
}

/// Standard output or error. What is written to the two is counted together.
#[derive(Clone)]
struct Output {
    sink: Arc<Mutex<Box<dyn Write + Send>>>,
    left: Arc<Mutex<usize>>,
    limit: usize,
}

impl Output {
    fn take(&self, bytes: usize) -> StreamResult<()> {
        let mut left = self.left.lock();
        match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(StreamError::Trap(wasmtime::format_err!(
                "it wrote more than {} bytes",
                self.limit
            ))),
        }
    }

    fn with_sink(&self, act: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> StreamResult<()> {
        // Nobody may be reading any more, which a program may want to know.
        act(&mut *self.sink.lock()).map_err(|error| StreamError::LastOperationFailed(error.into()))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl OutputStream for Output {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.take(bytes.len())?;
        self.with_sink(|sink| sink.write_all(&bytes))
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.with_sink(|sink| sink.flush())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK_BYTES)
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// For a version of WASI that no caller is given.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

/// A clock that stands still between its steps.
struct CoarseClock {
    started: Instant,
}

impl CoarseClock {
    fn new() -> Self {
        CoarseClock {
            started: Instant::now(),
        }
    }
}

fn coarse(time: Duration) -> Duration {
    let step = RESOLUTION.as_nanos();
    let steps = u64::try_from(time.as_nanos() / step).unwrap_or(u64::MAX);
    Duration::from_millis(steps)
}

impl HostWallClock for CoarseClock {
    fn resolution(&self) -> Duration {
        RESOLUTION
    }

    fn now(&self) -> Duration {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // A clock before 1970 is one that was never set.
        coarse(since_epoch.unwrap_or_default())
    }
}

impl HostMonotonicClock for CoarseClock {
    fn resolution(&self) -> u64 {
        u64::try_from(RESOLUTION.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(coarse(self.started.elapsed()).as_nanos()).unwrap_or(u64::MAX)
    }
}
