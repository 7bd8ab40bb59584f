//! How much a caller may use: its memory counted as it grows, and the numbers for what is
//! counted elsewhere.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// What an element of a table is counted as, in bytes: at least what it takes.
const TABLE_ELEMENT_BYTES: usize = 16;

/// How many instances of modules, tables, and memories a caller may have, each: enough for
/// the runtimes of other languages.
const MAX_PARTS: usize = 200;

/// How much a caller may use in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory, tables included; 64 MiB by default.
    pub memory_bytes: usize,
    /// Time from its start to its end, waiting included; 30 seconds by default.
    pub time: Duration,
    /// Standard output and error together, and what `run` returns; 1 MiB each by default.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_bytes: 64 << 20,
            time: Duration::from_secs(30),
            output_bytes: 1 << 20,
        }
    }
}

/// The memory of one run: all memories and tables of all its modules together.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    used: usize,
    exceeded: bool,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Budget {
            bytes,
            used: 0,
            exceeded: false,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether more was asked for than there is.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    /// Takes what it costs to grow from `current` to `desired` elements of so many bytes.
    fn grow(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
        element_bytes: usize,
    ) -> bool {
        // What the module's own limit refuses is not taken.
        let is_possible = maximum.is_none_or(|maximum| desired <= maximum);
        let elements = desired.saturating_sub(current);
        is_possible && self.take(elements.saturating_mul(element_bytes))
    }

    fn take(&mut self, bytes: usize) -> bool {
        let used = self.used.saturating_add(bytes);
        if used > self.bytes {
            self.exceeded = true;
            return false;
        }
        self.used = used;
        true
    }
}

impl ResourceLimiter for Budget {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired, maximum, 1))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired, maximum, TABLE_ELEMENT_BYTES))
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_PARTS
    }
}
