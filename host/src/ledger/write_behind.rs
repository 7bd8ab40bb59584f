//! The thread that flushes the ledger at an interval.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Ledger;
use crate::error::{Error, Result};

/// Flushes until it is dropped. The last flush is left to who drops it.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl WriteBehind {
    pub(crate) fn start(ledger: Arc<Ledger>, interval: Duration) -> Result<Self> {
        // Without any pause it would do nothing else.
        let interval = interval.max(Duration::from_millis(1));
        let stop = Arc::new(Stop::default());
        let thread = thread::Builder::new()
            .name("tidegate-write-behind".to_owned())
            .spawn({
                let stop = Arc::clone(&stop);
                move || run(&ledger, interval, &stop)
            })
            .map_err(Error::storage("start the thread that writes signals"))?;
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
            tracing::error!("the thread that writes signals panicked");
        }
    }
}

fn run(ledger: &Ledger, interval: Duration, stop: &Stop) {
    let mut requested = stop.requested.lock();
    while !*requested {
        if stop.changed.wait_for(&mut requested, interval).timed_out() {
            // Whoever asks to stop must not wait for this lock while a flush runs.
            parking_lot::MutexGuard::unlocked(&mut requested, || flush(ledger));
        }
    }
}

fn flush(ledger: &Ledger) {
    if let Err(error) = ledger.flush() {
        // Nothing is lost while the process lives: the next flush tries again.
        tracing::error!(%error, "signals could not be written");
    }
}
