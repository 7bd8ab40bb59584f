//! Turns: transitions of one user happen one after the other, those of different users
//! at once.

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Enough that users who transition at the same moment seldom share a turn.
const STRIPES: usize = 4096;

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    /// Held for reading by every transition, for writing by who needs that there is
    /// none.
    pause: RwLock<()>,
    /// A user's turn is the stripe that their id leads to; a few users share one.
    stripes: Box<[Mutex<()>]>,
}

/// One user's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    _stripe: MutexGuard<'a, ()>,
    _running: RwLockReadGuard<'a, ()>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Turns {
            pause: RwLock::new(()),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Waits until no other transition of this user is under way.
    pub(super) fn take(&self, user_id: u64) -> Turn<'_> {
        let running = self.pause.read();
        // Ids are often multiples of something; the multiplication spreads them.
        let spread = user_id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let stripe = usize::try_from(spread).unwrap_or(0) % STRIPES;
        Turn {
            _stripe: self.stripes[stripe].lock(),
            _running: running,
        }
    }

    /// Runs `with` while no transition is under way.
    pub(super) fn paused<R>(&self, with: impl FnOnce() -> R) -> R {
        let _paused = self.pause.write();
        with()
    }
}
