//! Where each user counts: the cohorts they belong to and the communities they
//! joined, as scopes, ready for the hot path.
//!
//! A user's audience is read from storage once, at their first signal after
//! opening or after a change, and kept in memory from then on: opening does not
//! read the users partition, and signals do not read storage. The crate `papaya`
//! is named nowhere else.

use std::sync::Arc;

use foldhash::fast::RandomState;
use papaya::HashMap;

use super::scopes::{Scope, ScopeId, Scopes};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};

/// Where one user's signals count beside the base ledger.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    pub(crate) cohorts: Box<[ScopeId]>,
    pub(crate) communities: Box<[ScopeId]>,
}

/// The audiences known so far. Without one a user's is in storage.
#[derive(Debug)]
pub(super) struct Audiences {
    known: HashMap<u64, Arc<Audience>, RandomState>,
    /// Shared by all users who are in nothing.
    nothing: Arc<Audience>,
}

impl Audiences {
    pub(super) fn new() -> Self {
        Audiences {
            known: HashMap::with_hasher(RandomState::default()),
            nothing: Arc::default(),
        }
    }

    /// Calls `with` with a user's audience, if it is known; gives `with` back if not.
    /// Counts no references, which threads would contend for.
    pub(super) fn with<R, F: FnOnce(&Audience) -> R>(
        &self,
        user_id: u64,
        with: F,
    ) -> std::result::Result<R, F> {
        match self.known.pin().get(&user_id) {
            Some(audience) => Ok(with(audience)),
            None => Err(with),
        }
    }

    /// Reads a user's audience from storage and keeps it. The caller sees to it
    /// that it does not change meanwhile.
    pub(super) fn load(
        &self,
        user_id: u64,
        storage: &Storage,
        scopes: &Scopes,
    ) -> Result<Arc<Audience>> {
        let audience = Audience {
            cohorts: memberships(
                storage,
                scopes,
                user_id,
                Tag::CohortMembership,
                Scope::Cohort,
            )?,
            communities: memberships(
                storage,
                scopes,
                user_id,
                Tag::CommunityMembership,
                Scope::Community,
            )?,
        };
        let audience = if audience.cohorts.is_empty() && audience.communities.is_empty() {
            Arc::clone(&self.nothing)
        } else {
            Arc::new(audience)
        };
        self.known.pin().insert(user_id, Arc::clone(&audience));
        Ok(audience)
    }

    /// Forgets a user's audience, so that it is read again.
    pub(super) fn forget(&self, user_id: u64) {
        self.known.pin().remove(&user_id);
    }

    /// Forgets every audience.
    pub(super) fn forget_all(&self) {
        self.known.pin().clear();
    }
}

/// The scopes named by a user's keys of one tag.
fn memberships(
    storage: &Storage,
    scopes: &Scopes,
    user_id: u64,
    tag: Tag,
    scope: fn(String) -> Scope,
) -> Result<Box<[ScopeId]>> {
    let mut ids = Vec::new();
    let prefix = encode_key(EntityId(user_id), tag, b"");
    storage.users_engine().scan(&prefix, |key, _| {
        let name = parse_key(key)
            .and_then(|(_, _, name)| str::from_utf8(name).ok())
            .ok_or("its key does not parse")
            .map_err(Error::storage(format!("read where user {user_id} counts")))?;
        // A name without a scope has no aggregate to add to.
        ids.extend(scopes.get(&scope(name.to_owned())));
        Ok(())
    })?;
    Ok(ids.into())
}
