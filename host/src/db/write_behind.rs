//! The thread that writes at an interval what is in memory: signals, and transitions that
//! only the journal has yet.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// Flushes until it is dropped. The last flush is left to who drops it.
#[derive(Debug)]
pub(super) struct WriteBehind {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl WriteBehind {
    pub(super) fn start(
        interval: Duration,
        flush: impl Fn() -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        // Without any pause it would do nothing else.
        let interval = interval.max(Duration::from_millis(1));
        let stop = Arc::new(Stop::default());
        let thread = thread::Builder::new()
            .name("tidegate-write-behind".to_owned())
            .spawn({
                let stop = Arc::clone(&stop);
                move || run(&flush, interval, &stop)
            })
            .map_err(Error::storage(
                "start the thread that writes what is in memory",
            ))?;
        Ok(WriteBehind {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        *self.stop.requested.lock() = true;
        self.stop.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes what is in memory panicked");
        }
    }
}

fn run(flush: &dyn Fn() -> Result<()>, interval: Duration, stop: &Stop) {
    let mut requested = stop.requested.lock();
    while !*requested {
        if stop.changed.wait_for(&mut requested, interval).timed_out() {
            // Whoever asks to stop must not wait for this lock while a flush runs.
            parking_lot::MutexGuard::unlocked(&mut requested, || {
                if let Err(error) = flush() {
                    // Nothing is lost while the process lives: the next one tries again.
                    tracing::error!(%error, "what is in memory could not be written");
                }
            });
        }
    }
}
