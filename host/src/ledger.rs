//! The signal ledger: aggregates by scope, and who counts in which scope.
//!
//! - [`scopes`]: the base, cohorts and communities, and their numbers
//! - [`cohorts`]: predicates over profiles
//! - [`audience`]: where each user counts
//! - [`pending`]: contributions not yet in storage
//! - [`aggregates`]: aggregates in storage
//! - [`positions`]: how far inputs were read
//! - [`weight`]: weights as whole millionths
//!
//! The ledger adds whatever it is told to. Whether a signal may be added is asked
//! before it gets here (`db::fan_out`).

mod aggregates;
pub(crate) mod audience;
pub(crate) mod cohorts;
pub(crate) mod pending;
mod positions;
mod scopes;
mod weight;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::clock::HostClock;
use crate::error::{Error, Result};
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};
use crate::storage::{Batch, Partition, Storage};
use audience::{Audience, Audiences};
use cohorts::{Predicate, StoredCohort};
use pending::{Contribution, Contributions, Pending, Recorder, SignalTotals, Sum};
use scopes::{ScopeId, Scopes};
use weight::Millionths;

pub use cohorts::{MAX_PREDICATE_BYTES, MAX_PROFILE_BYTES, Profile};
pub use positions::{Position, StoredPosition};
pub use scopes::{MAX_NAME_BYTES, Scope};

/// The longest kind of a signal, in bytes.
pub const MAX_KIND_BYTES: usize = 64;

/// How many keys one batch holds where a change concerns many users.
const USERS_PER_BATCH: usize = 4096;

/// Whose high-water mark of the clock the ledger writes.
const CLOCK_OWNER: &[u8] = b"signals";

/// One engagement of a user with an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal<'a> {
    /// The item.
    pub item_id: u64,
    /// What the user did, such as `view`, `like` or `rating`: 1 to 64 bytes.
    pub kind: &'a str,
    /// How much it counts: finite, at most 10^9 in magnitude. Summed in
    /// millionths; what is finer is rounded, halves away from zero.
    pub weight: f64,
}

impl<'a> TryFrom<&Signal<'a>> for Contribution<'a> {
    type Error = Error;

    fn try_from(signal: &Signal<'a>) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidSignal { reason };
        if signal.kind.is_empty() || signal.kind.len() > MAX_KIND_BYTES {
            return Err(invalid(format!(
                "kind of {} bytes; a kind has 1 to {MAX_KIND_BYTES}",
                signal.kind.len()
            )));
        }
        let weight = Millionths::from_weight(signal.weight).ok_or_else(|| {
            invalid(format!(
                "weight {}; a weight is finite and at most 10^9 in magnitude",
                signal.weight
            ))
        })?;
        Ok(Contribution {
            item_id: signal.item_id,
            kind: signal.kind,
            weight,
        })
    }
}

/// What one scope has gained for one item and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aggregate {
    /// The number of signals.
    pub count: u64,
    /// The sum of their weights: exact in millionths, then the nearest floating
    /// point number.
    pub weight: f64,
}

impl From<Sum> for Aggregate {
    fn from(sum: Sum) -> Self {
        Aggregate {
            count: sum.count,
            weight: sum.weight.to_weight(),
        }
    }
}

/// One row of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The item.
    pub item_id: u64,
    /// The kind of its signals.
    pub kind: String,
    /// The number of signals.
    pub count: u64,
    /// The sum of their weights.
    pub weight: f64,
}

/// What a batch that may or may not be in storage was to bring about.
#[derive(Debug)]
struct Flush {
    batch: Batch,
    totals: SignalTotals,
}

/// What storage holds, beside the aggregates themselves.
#[derive(Debug)]
struct Committed {
    totals: SignalTotals,
    /// A flush whose batch storage failed to apply. It holds final values, so
    /// applying it again is right whether or not it took effect, and it has to be
    /// applied before anything is read or written.
    unfinished: Option<Flush>,
}

/// Which scopes there are and which users count in them.
#[derive(Debug)]
struct Directory {
    scopes: Scopes,
    cohorts: BTreeMap<String, Predicate>,
}

/// All aggregates, and who counts in them.
#[derive(Debug)]
pub(crate) struct Ledger {
    storage: Storage,
    clock: Arc<HostClock>,
    /// The change lock: held for writing while a profile, a cohort or a community
    /// changes, for reading while an audience is read from storage, so that no
    /// audience outlives a change of it.
    directory: RwLock<Directory>,
    audiences: Audiences,
    pending: Pending,
    /// The commit lock: held for writing while contributions move from memory to
    /// storage, for reading while both are added up.
    committed: RwLock<Committed>,
    /// Whether storage was written to since it was last synced.
    unsynced: AtomicBool,
}

impl Ledger {
    pub(crate) fn load(storage: Storage, clock: Arc<HostClock>) -> Result<Self> {
        let totals = match storage.partition(Partition::System).get(&totals_key())? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(Error::storage("read the totals of signals"))?,
            None => SignalTotals::default(),
        };
        let scopes = Scopes::load(&storage)?;
        let ledger = Ledger {
            directory: RwLock::new(Directory {
                scopes,
                cohorts: BTreeMap::new(),
            }),
            audiences: Audiences::new(),
            pending: Pending::new(),
            committed: RwLock::new(Committed {
                totals,
                unfinished: None,
            }),
            unsynced: AtomicBool::new(false),
            storage,
            clock,
        };
        ledger.load_cohorts()?;
        Ok(ledger)
    }

    fn load_cohorts(&self) -> Result<()> {
        let mut stored = Vec::new();
        self.storage
            .partition(Partition::System)
            .scan(b"", |key, value| {
                if let Some((_, Tag::CohortPredicate, name)) = parse_key(key) {
                    let reading = || format!("read cohort `{}`", name.escape_ascii());
                    let name = str::from_utf8(name).map_err(Error::storage(reading()))?;
                    let cohort: StoredCohort =
                        serde_json::from_slice(value).map_err(Error::storage(reading()))?;
                    stored.push((name.to_owned(), cohort));
                }
                Ok(())
            })?;
        for (name, cohort) in stored {
            if cohort.evaluated {
                let predicate = Predicate::compile(&name, &cohort.predicate)?;
                self.directory.write().cohorts.insert(name, predicate);
            } else {
                self.define_cohort(&name, &cohort.predicate)?;
            }
        }
        Ok(())
    }

    /// Calls `with` with where this user counts. From memory, except for the first time.
    pub(crate) fn with_audience<R>(
        &self,
        user_id: u64,
        with: impl FnOnce(&Audience) -> R,
    ) -> Result<R> {
        let with = match self.audiences.with(user_id, with) {
            Ok(outcome) => return Ok(outcome),
            Err(with) => with,
        };
        let audience = {
            let directory = self.directory.read();
            self.audiences
                .load(user_id, &self.storage, &directory.scopes)?
        };
        Ok(with(&audience))
    }

    /// Lets `record` add one signal, of which nobody sees or stores a part. Touches
    /// nothing but memory.
    pub(crate) fn record<R>(
        &self,
        contribution: &Contribution<'_>,
        record: impl FnOnce(&mut Recorder<'_>) -> R,
    ) -> R {
        self.pending.record(contribution, record)
    }

    pub(crate) fn count_rejected(&self) {
        self.pending.count_rejected();
    }

    /// Notes how far an input was read, to be stored with what was counted up to there.
    pub(crate) fn advance(&self, position: &Position<'_>, rejected: u64) {
        self.pending
            .advance(position.input, self.stamp(position), rejected);
    }

    pub(crate) fn stamp(&self, position: &Position<'_>) -> StoredPosition {
        StoredPosition {
            records: position.records,
            at_ns: self.clock.now_ns(),
        }
    }

    /// How far an input was read when the store was last flushed.
    pub(crate) fn position(&self, input: &str) -> Result<Option<StoredPosition>> {
        positions::read(&self.storage, input)
    }

    /// Replaces a user's profile and works out their cohorts.
    pub(crate) fn set_profile(&self, user_id: u64, profile: &Profile) -> Result<()> {
        let bytes = cohorts::encode_profile(profile)?;
        let directory = self.directory.write();
        let mut batch = Batch::default();
        batch.put(
            Partition::Users,
            encode_key(EntityId(user_id), Tag::Profile, b""),
            bytes,
        );
        for (name, predicate) in &directory.cohorts {
            put_cohort_membership(&mut batch, user_id, name, predicate.is_met(profile));
        }
        self.apply_of_user(user_id, &batch)
    }

    /// Defines a cohort, or gives one another predicate, and works out its members.
    pub(crate) fn define_cohort(&self, name: &str, source: &str) -> Result<()> {
        scopes::check_name("cohort name", name)?;
        let predicate = Predicate::compile(name, source)?;
        let scope = Scope::Cohort(name.to_owned());
        let mut directory = self.directory.write();

        let mut batch = Batch::default();
        let id = directory.scopes.get_or_assign(&scope, &mut batch);
        put_cohort(&mut batch, name, source, false)?;
        self.apply(&batch)?;
        directory.scopes.insert(&scope, id);
        // From here on members change: nobody may go by what was known.
        self.audiences.forget_all();

        for users in self.evaluate(&predicate)?.chunks(USERS_PER_BATCH) {
            let mut batch = Batch::default();
            for (user_id, is_met) in users {
                put_cohort_membership(&mut batch, *user_id, name, *is_met);
            }
            self.apply(&batch)?;
        }
        let mut batch = Batch::default();
        put_cohort(&mut batch, name, source, true)?;
        self.apply(&batch)?;
        directory.cohorts.insert(name.to_owned(), predicate);
        Ok(())
    }

    /// Every user with a profile, and whether it meets the predicate.
    fn evaluate(&self, predicate: &Predicate) -> Result<Vec<(u64, bool)>> {
        let mut users = Vec::new();
        self.storage.users_engine().scan(b"", |key, value| {
            if let Some((EntityId(user_id), Tag::Profile, b"")) = parse_key(key) {
                let profile = serde_json::from_slice(value).map_err(Error::storage(format!(
                    "read the profile of user {user_id}"
                )))?;
                users.push((user_id, predicate.is_met(&profile)));
            }
            Ok(())
        })?;
        Ok(users)
    }

    /// The cohorts with their predicates, in the order of their names.
    pub(crate) fn cohorts(&self) -> Vec<(String, String)> {
        self.directory
            .read()
            .cohorts
            .iter()
            .map(|(name, predicate)| (name.clone(), predicate.source().to_owned()))
            .collect()
    }

    /// Adds a user to a community, which is made if there is none of this name.
    pub(crate) fn join_community(&self, user_id: u64, name: &str) -> Result<()> {
        scopes::check_name("community name", name)?;
        let scope = Scope::Community(name.to_owned());
        let mut directory = self.directory.write();
        let mut batch = Batch::default();
        let id = directory.scopes.get_or_assign(&scope, &mut batch);
        batch.put(
            Partition::Users,
            community_membership_key(user_id, name),
            Vec::new(),
        );
        self.apply_of_user(user_id, &batch)?;
        directory.scopes.insert(&scope, id);
        Ok(())
    }

    /// Takes a user out of a community. Durable when it returns.
    pub(crate) fn quit_community(&self, user_id: u64, name: &str) -> Result<()> {
        let directory = self.directory.write();
        if directory
            .scopes
            .get(&Scope::Community(name.to_owned()))
            .is_none()
        {
            return Err(Error::NotFound {
                what: "community",
                name: name.to_owned(),
            });
        }
        let mut batch = Batch::default();
        batch.delete(Partition::Users, community_membership_key(user_id, name));
        self.apply_of_user(user_id, &batch)?;
        self.storage.flush()
    }

    /// The communities, in the order of their names.
    pub(crate) fn communities(&self) -> Vec<String> {
        self.directory.read().scopes.communities()
    }

    /// Applies a change that the next flush makes durable.
    fn apply(&self, batch: &Batch) -> Result<()> {
        self.storage.apply(batch)?;
        self.note_unsynced();
        Ok(())
    }

    /// Applies a change of where a user counts. The caller holds the change lock.
    fn apply_of_user(&self, user_id: u64, batch: &Batch) -> Result<()> {
        let applied = self.apply(batch);
        // After an error too: it leaves open whether storage took the batch.
        self.audiences.forget(user_id);
        applied
    }

    /// Has the next flush sync storage, because somebody has written to it.
    pub(crate) fn note_unsynced(&self) {
        // Release, with the acquire in `flush`: who sees the flag syncs the write.
        self.unsynced.store(true, Ordering::Release);
    }

    /// What a scope has gained for one item and kind; zero if nothing.
    pub(crate) fn aggregate(&self, scope: &Scope, item_id: u64, kind: &str) -> Result<Aggregate> {
        let scope = self.scope(scope)?;
        let committed = self.committed.read();
        committed.check_readable()?;
        let mut sum = aggregates::read(&self.storage, &aggregates::key(scope, item_id, kind))?;
        self.pending.visit(|contributions| {
            sum.add(contributions.sum(scope, item_id, kind).unwrap_or_default());
        });
        Ok(sum.into())
    }

    /// The items of a scope by summed weight, the heaviest first, then by item and
    /// kind; only those of `kind`, if one is given.
    pub(crate) fn top(
        &self,
        scope: &Scope,
        kind: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Ranked>> {
        let scope = self.scope(scope)?;
        let mut sums: HashMap<(u64, String), Sum> = HashMap::new();
        {
            let committed = self.committed.read();
            committed.check_readable()?;
            let mut add = |item_id: u64, of_kind: &str, sum: Sum| {
                if kind.is_none_or(|kind| kind == of_kind) {
                    sums.entry((item_id, of_kind.to_owned()))
                        .or_default()
                        .add(sum);
                }
            };
            aggregates::scan(&self.storage, scope, &mut add)?;
            self.pending.visit(|contributions| {
                for (of_scope, item_id, of_kind, sum) in contributions.sums() {
                    if of_scope == scope {
                        add(item_id, of_kind, sum);
                    }
                }
            });
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_unstable_by(|(left, left_sum), (right, right_sum)| {
            right_sum
                .weight
                .cmp(&left_sum.weight)
                .then_with(|| left.cmp(right))
        });
        rows.truncate(limit);
        Ok(rows
            .into_iter()
            .map(|((item_id, kind), sum)| Ranked {
                item_id,
                kind,
                count: sum.count,
                weight: sum.weight.to_weight(),
            })
            .collect())
    }

    fn scope(&self, scope: &Scope) -> Result<ScopeId> {
        self.directory.read().scopes.get(scope).ok_or_else(|| {
            let (what, name) = match scope {
                Scope::Base => ("scope", "base"),
                Scope::Cohort(name) => ("cohort", name.as_str()),
                Scope::Community(name) => ("community", name.as_str()),
            };
            Error::NotFound {
                what,
                name: name.to_owned(),
            }
        })
    }

    /// What all signals since the store was made did.
    pub(crate) fn totals(&self) -> SignalTotals {
        let committed = self.committed.read();
        let unfinished = committed.unfinished.as_ref();
        let mut totals = unfinished.map_or(committed.totals, |flush| flush.totals);
        self.pending
            .visit(|contributions| totals.add(contributions.totals()));
        totals
    }

    /// Makes everything durable that was recorded or changed before the call.
    ///
    /// After an error nothing is lost while the process lives, and the next flush
    /// tries again.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut committed = self.committed.write();
        // A batch that failed before is first; what gathered since builds on it.
        self.finish(&mut committed)?;
        committed.unfinished = self.gather(&committed.totals)?;
        self.finish(&mut committed)?;
        if self.unsynced.swap(false, Ordering::Acquire) {
            self.storage.flush().inspect_err(|_| self.note_unsynced())?;
        }
        Ok(())
    }

    /// Applies the batch that is not finished, if there is one.
    fn finish(&self, committed: &mut Committed) -> Result<()> {
        if let Some(flush) = &committed.unfinished {
            self.storage.apply(&flush.batch)?;
            committed.totals = flush.totals;
            committed.unfinished = None;
            self.note_unsynced();
        }
        Ok(())
    }

    /// Runs `with` while nothing of the ledger in storage changes, after a flush.
    pub(crate) fn paused<R>(&self, with: impl FnOnce() -> Result<R>) -> Result<R> {
        let _directory = self.directory.write();
        self.flush()?;
        let _committed = self.committed.read();
        with()
    }

    /// Takes what is pending and works out the values that storage is to hold.
    fn gather(&self, totals: &SignalTotals) -> Result<Option<Flush>> {
        let taken = self.pending.take();
        if taken.is_empty() {
            return Ok(None);
        }
        match self.batch_of(&taken, *totals) {
            Ok(flush) => Ok(Some(flush)),
            Err(error) => {
                self.pending.put_back(&taken);
                Err(error)
            }
        }
    }

    fn batch_of(&self, taken: &Contributions, mut totals: SignalTotals) -> Result<Flush> {
        let mut batch = Batch::default();
        for (scope, item_id, kind, gained) in taken.sums() {
            let key = aggregates::key(scope, item_id, kind);
            let mut sum = aggregates::read(&self.storage, &key)?;
            sum.add(gained);
            batch.put(Partition::Ledger, key, aggregates::encode(sum));
        }
        totals.add(taken.totals());
        batch.put(
            Partition::System,
            totals_key(),
            to_json("the totals of signals", &totals)?,
        );
        taken.positions().put(&mut batch)?;
        self.clock.put_high_water(CLOCK_OWNER, &mut batch);
        Ok(Flush { batch, totals })
    }
}

impl Committed {
    fn check_readable(&self) -> Result<()> {
        match self.unfinished {
            None => Ok(()),
            Some(_) => Err(Error::storage("read aggregates")(
                "the last write of signals failed; flush to try it again",
            )),
        }
    }
}

fn totals_key() -> Vec<u8> {
    encode_key(EntityId(0), Tag::SignalTotals, b"")
}

fn community_membership_key(user_id: u64, name: &str) -> Vec<u8> {
    encode_key(EntityId(user_id), Tag::CommunityMembership, name.as_bytes())
}

fn put_cohort(batch: &mut Batch, name: &str, source: &str, evaluated: bool) -> Result<()> {
    let cohort = StoredCohort {
        predicate: source.to_owned(),
        evaluated,
    };
    batch.put(
        Partition::System,
        encode_key(EntityId(0), Tag::CohortPredicate, name.as_bytes()),
        to_json("a cohort", &cohort)?,
    );
    Ok(())
}

fn put_cohort_membership(batch: &mut Batch, user_id: u64, cohort: &str, is_member: bool) {
    let key = encode_key(EntityId(user_id), Tag::CohortMembership, cohort.as_bytes());
    if is_member {
        batch.put(Partition::Users, key, Vec::new());
    } else {
        batch.delete(Partition::Users, key);
    }
}

/// The stored form of a value that is kept as JSON.
pub(crate) fn to_json(what: &str, value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::storage(format!("write {what}")))
}
