//! `TidalDb`: the handle on which an application calls the four verbs.
//!
//! - [`opening`]: from a folder to a handle
//! - [`reconcile`]: the journal and the store compared, each repaired from the other,
//!   and the gate filled
//! - [`transitions`]: leave and rejoin, in the order that the invariants need
//! - [`turns`]: one transition of a user at a time
//! - [`commit`]: transitions made durable, many with one sync
//! - [`history`]: the history in storage
//! - [`write_behind`]: the thread that writes at an interval what is in memory
//! - [`fan_out`]: what a signal is added to, and the two places where the gate's answer
//!   decides
//! - [`swap`]: the rules exchanged while signals flow
//! - [`verification`]: every record read and compared with the gate
//! - [`backup`], [`transfer`]: the store in a file, and memberships as plain data
//!
//! This file holds the handle and what it only passes on. The handle decides the
//! order of effects; the rules decide what they are, the gate remembers them, the
//! ledger adds up, storage keeps.

pub(crate) mod backup;
mod commit;
mod fan_out;
mod history;
mod opening;
mod reconcile;
mod swap;
mod transfer;
mod transitions;
mod turns;
mod verification;
mod write_behind;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use tempfile::TempDir;

use crate::clock::HostClock;
use crate::error::{Error, Result};
use crate::gate::{Gate, Standing};
use crate::ledger::{Aggregate, Ledger, Position, Profile, Ranked, Scope, Signal, StoredPosition};
use crate::membership::{CommunityMembership, MembershipStatus, Transition};
use crate::rules::Rules;
use crate::storage::Storage;
use commit::GroupCommit;
use opening::StoreLock;
use reconcile::Loss;
use turns::Turns;
use write_behind::WriteBehind;

pub use verification::Verification;

/// What became of an accepted signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The number of cohorts whose aggregate gained it.
    pub cohorts: u32,
    /// The number of communities whose aggregate gained it.
    pub communities: u32,
    /// Whether the gate held the signal back from at least one of the two ways,
    /// even if the user is in no cohort and no community. The base ledger has
    /// gained it all the same.
    pub gated: bool,
}

/// Totals since the store was made, and how many users the gate holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accepted signals.
    pub signals: u64,
    /// Acknowledged leaves.
    pub leaves: u64,
    /// Acknowledged rejoins.
    pub rejoins: u64,
    /// Events that a reader refused; see [`TidalDb::count_rejected`].
    pub rejected: u64,
    /// One for each signal and cohort that it was added to.
    pub cohort_contributions: u64,
    /// One for each signal and community that it was added to.
    pub community_contributions: u64,
    /// Signals that the gate held back from cohorts.
    pub gated_cohort_attribution: u64,
    /// Signals that the gate held back from communities.
    pub gated_community_forwarding: u64,
    /// Users who have left and not come back.
    pub left_users: u64,
    /// Stored records that can't be read.
    pub malformed_records: u64,
}

/// A store of engagement signals whose users may leave its community layer.
///
/// All methods may be called from many threads at once. Dropping it writes what is
/// still in memory; an error then is only logged, so call [`TidalDb::flush`]
/// before where it matters.
///
/// ```
/// use tidegate::{MembershipStatus, Scope, Signal, TidalDb};
///
/// let db = TidalDb::ephemeral()?;
/// db.join_community(42, "film")?;
/// let like = Signal { item_id: 7, kind: "like", weight: 1.0 };
///
/// assert_eq!(db.signal_with_context(42, &like)?.communities, 1);
///
/// db.leave_community_layer(42)?;
/// let receipt = db.signal_with_context(42, &like)?;
/// assert!(receipt.gated);
/// assert_eq!(receipt.communities, 0);
///
/// let film = Scope::Community("film".to_owned());
/// assert_eq!(db.aggregate(&film, 7, "like")?.count, 1);
/// assert_eq!(db.aggregate(&Scope::Base, 7, "like")?.count, 2);
/// assert_eq!(db.community_layer_status(42)?.status, MembershipStatus::Left);
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Debug)]
pub struct TidalDb {
    // Fields are dropped in this order: the thread that flushes ends first, the
    // lock on the folder and the folder itself go last.
    write_behind: Option<WriteBehind>,
    ledger: Arc<Ledger>,
    gate: Gate,
    /// Written by who exchanges them, while no transition is under way.
    rules: RwLock<Rules>,
    turns: Turns,
    commit: Arc<GroupCommit>,
    clock: Arc<HostClock>,
    storage: Storage,
    /// Malformed records that name no user, so that no gate could be shut.
    unattributed_records: u64,
    /// What was lost, so that the gate is shut by default.
    loss: Loss,
    path: PathBuf,
    _lock: StoreLock,
    temporary: Option<TempDir>,
}

impl TidalDb {
    /// Stops the fan-out of this user's signals, durably.
    ///
    /// When it returns `Ok`, every signal of this user that was under way on
    /// another thread has finished, no cohort and no community gains anything from
    /// this user until a rejoin begins, and that holds after a crash or a power cut
    /// too. The instant in [`CommunityMembership::left_at_ns`] is above the stamp
    /// of every contribution before it. Leaving again is fine and sets a fresh
    /// boundary.
    ///
    /// After an error the gate is shut in this process, but that may not last: call
    /// again.
    pub fn leave_community_layer(&self, user_id: u64) -> Result<()> {
        self.transition(user_id, MembershipStatus::Left).map(drop)
    }

    /// Resumes the fan-out of this user's signals, durably. The boundary of the
    /// last leave and the history stay.
    ///
    /// The gate opens after the change is durable, as the last thing before this
    /// returns. After an error it is as it was, or shut.
    pub fn rejoin_community_layer(&self, user_id: u64) -> Result<()> {
        self.transition(user_id, MembershipStatus::Active).map(drop)
    }

    /// Where this user stands. A user without a record is active and never left.
    ///
    /// [`Error::MalformedRecord`] if the user's stored record can't be read, or if
    /// transitions were lost that may have been this user's, and
    /// [`Error::NotDurable`] after a transition that failed; in each case the gate
    /// is shut.
    pub fn community_layer_status(&self, user_id: u64) -> Result<CommunityMembership> {
        let Some(known) = self.gate.known(user_id) else {
            return Ok(CommunityMembership::never_left(user_id));
        };
        match known.standing {
            Standing::Settled => Ok(known.membership),
            Standing::Unsettled => Err(Error::NotDurable {
                user_id,
                reason: "the error was returned to the caller of that transition".to_owned(),
            }),
            Standing::Malformed => Err(self.why_malformed(user_id)),
            Standing::Lost => Err(Error::MalformedRecord {
                user_id,
                reason:
                    "transitions were lost when the store was damaged, and they may be of this user"
                        .to_owned(),
            }),
        }
    }

    /// Every acknowledged leave and rejoin of this user, the oldest first.
    pub fn community_layer_history(&self, user_id: u64) -> Result<Vec<Transition>> {
        self.commit.apply()?;
        history::of_user(&self.storage, user_id)
    }

    /// Sets a user's attributes, all of them, and works out which cohorts the user
    /// belongs to. Durable with the next flush.
    ///
    /// At most [`MAX_PROFILE_BYTES`](crate::MAX_PROFILE_BYTES) of JSON.
    pub fn set_profile(&self, user_id: u64, attributes: &Profile) -> Result<()> {
        self.ledger.set_profile(user_id, attributes)
    }

    /// Defines a cohort by a predicate in the Common Expression Language, such as
    /// `int(age) < 25`, or gives an existing one another predicate. Users belong to
    /// it from then on; what it gained before stays. Durable with the next flush.
    ///
    /// A profile for which the predicate can't be evaluated does not meet it: an
    /// attribute may be missing or have another type, or a function not exist. What is
    /// checked here is that it parses, has at most
    /// [`MAX_PREDICATE_BYTES`](crate::MAX_PREDICATE_BYTES), and no loop within a loop.
    /// The cost follows the number of profiles.
    pub fn define_cohort(&self, name: &str, predicate: &str) -> Result<()> {
        self.ledger.define_cohort(name, predicate)
    }

    /// The cohorts with their predicates, in the order of their names.
    pub fn cohorts(&self) -> Vec<(String, String)> {
        self.ledger.cohorts()
    }

    /// Adds a user to a community, which is made if there is none of this name.
    /// Durable with the next flush.
    pub fn join_community(&self, user_id: u64, name: &str) -> Result<()> {
        self.ledger.join_community(user_id, name)
    }

    /// Takes a user out of one community. What it gained from them stays. Durable
    /// when it returns.
    pub fn quit_community(&self, user_id: u64, name: &str) -> Result<()> {
        self.ledger.quit_community(user_id, name)
    }

    /// The communities, in the order of their names.
    pub fn communities(&self) -> Vec<String> {
        self.ledger.communities()
    }

    /// What a scope has gained for one item and kind; zero if nothing.
    pub fn aggregate(&self, scope: &Scope, item_id: u64, kind: &str) -> Result<Aggregate> {
        self.ledger.aggregate(scope, item_id, kind)
    }

    /// The items of a scope by summed weight, the heaviest first, then by item and
    /// kind; only those of `kind`, if one is given.
    pub fn top(&self, scope: &Scope, kind: Option<&str>, limit: usize) -> Result<Vec<Ranked>> {
        self.ledger.top(scope, kind, limit)
    }

    /// Counts an event that the caller refused before it became a call, such as a
    /// line that could not be read.
    pub fn count_rejected(&self) {
        self.ledger.count_rejected();
    }

    /// Notes that an input was read up to `position` by something else than a signal,
    /// with so many `rejected` records since the last position. It becomes durable with
    /// the next flush, together with all signals before.
    ///
    /// A reader that wants every record to count exactly once after a crash flushes
    /// before it applies an event that is no signal and comes behind signals, and looks
    /// into the history before it applies a transition again.
    pub fn advance(&self, position: &Position<'_>, rejected: u64) {
        self.ledger.advance(position, rejected);
    }

    /// How far an input was read when the store was last flushed; `None` if nothing of
    /// it was.
    pub fn position(&self, input: &str) -> Result<Option<StoredPosition>> {
        self.ledger.position(input)
    }

    /// Totals since the store was made. Those of signals include what a crash may
    /// still lose.
    pub fn stats(&self) -> Stats {
        let signals = self.ledger.totals();
        let transitions = self.commit.totals();
        let census = self.gate.census();
        Stats {
            signals: signals.signals,
            leaves: transitions.leaves,
            rejoins: transitions.rejoins,
            rejected: signals.rejected,
            cohort_contributions: signals.cohort_contributions,
            community_contributions: signals.community_contributions,
            gated_cohort_attribution: signals.gated_cohort_attribution,
            gated_community_forwarding: signals.gated_community_forwarding,
            left_users: census.left,
            malformed_records: census.malformed + self.unattributed_records,
        }
    }

    /// Makes every signal and every change durable that was made before the call.
    /// After an error nothing is lost while the process lives; call again.
    pub fn flush(&self) -> Result<()> {
        flush(&self.commit, &self.ledger)
    }
}

fn flush(commit: &GroupCommit, ledger: &Ledger) -> Result<()> {
    if commit.apply()? {
        ledger.note_unsynced();
    }
    ledger.flush()
}

impl Drop for TidalDb {
    fn drop(&mut self) {
        self.write_behind = None;
        if let Err(error) = self.flush() {
            tracing::error!(%error, "signals were lost when the store was closed");
        }
        self.commit.close();
    }
}
