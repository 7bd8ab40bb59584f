//! The rules as the host uses them: the functions of the component in the host's
//! own types, with the contract's promises checked, so that a component that
//! breaks them is an error and never a wrong membership.
//!
//! - `component`: the sandbox: wasmtime, its limits, its cache
//! - `bindings`: the contract's types and the host's
//! - `inspection`: what a component is, for a person to see
//! - `conformance`: whether a component does what the contract says
//!
//! Deciding is left to the component; what to do
//! about it is left to the handle `TidalDb`.

mod bindings;
mod component;
mod conformance;
mod inspection;

use std::path::Path;

use crate::error::{Error, Result};
use crate::membership::{CommunityMembership, FanOut, MembershipStatus};
use component::Sandbox;

pub use conformance::{Check, check_component};
pub use inspection::{Inspection, inspect_component};

/// The component of rules that ships with this crate: the nine-byte record, and the
/// policy that a user who left takes part in nothing.
pub const SHIPPED_COMPONENT: &[u8] = include_bytes!("../../guest/membership.wasm");

/// The longest record that the contract allows.
const MAX_RECORD_BYTES: usize = 1024;

/// How many records one call of `restore` carries: enough that crossing into the
/// component does not count, little enough to stay in the cache.
pub(crate) const RESTORE_BATCH: usize = 4096;

/// A loaded component of rules. May be called from many threads at once.
#[derive(Debug)]
pub(crate) struct Rules {
    sandbox: Sandbox,
}

/// Stored records gathered for [`Rules::restore`].
#[derive(Debug, Default)]
pub(crate) struct StoredRecords {
    users: Vec<u64>,
    lengths: Vec<u32>,
    bytes: Vec<u8>,
}

impl StoredRecords {
    pub(crate) fn push(&mut self, user_id: u64, record: &[u8]) {
        // Far longer than any valid record, so malformed either way, and the
        // columns stay short.
        let record = &record[..record.len().min(MAX_RECORD_BYTES + 1)];
        self.users.push(user_id);
        self.lengths
            .push(u32::try_from(record.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(record);
    }

    pub(crate) fn len(&self) -> usize {
        self.users.len()
    }

    pub(crate) fn users(&self) -> &[u64] {
        &self.users
    }

    pub(crate) fn clear(&mut self) {
        self.users.clear();
        self.lengths.clear();
        self.bytes.clear();
    }
}

impl Rules {
    /// Loads a component; `name` says in errors which one.
    pub(crate) fn load(bytes: &[u8], name: &str, cache_folder: Option<&Path>) -> Result<Self> {
        Ok(Rules {
            sandbox: Sandbox::load(bytes, name, cache_folder)?,
        })
    }

    /// The membership after a leave at `now_ns`: left, and the boundary is the
    /// later of `now_ns` and the one until now. An instant of 0 is none.
    pub(crate) fn leave(
        &self,
        current: &CommunityMembership,
        now_ns: u64,
    ) -> Result<CommunityMembership> {
        let next = self.transition("leave", current, |membership, store| {
            membership.call_leave(store, current.into(), now_ns)
        })?;
        let boundary = current
            .left_at_ns
            .max(Some(now_ns).filter(|at_ns| *at_ns > 0));
        if next.status != MembershipStatus::Left || next.left_at_ns != boundary {
            return Err(broken(
                "leave",
                &format!("{next} for a leave of {current} at {now_ns}"),
            ));
        }
        Ok(next)
    }

    /// The membership after a rejoin: active, with the boundary kept.
    pub(crate) fn rejoin(&self, current: &CommunityMembership) -> Result<CommunityMembership> {
        let next = self.transition("rejoin", current, |membership, store| {
            membership.call_rejoin(store, current.into())
        })?;
        if next.status != MembershipStatus::Active || next.left_at_ns != current.left_at_ns {
            return Err(broken(
                "rejoin",
                &format!("{next} for a rejoin of {current}"),
            ));
        }
        Ok(next)
    }

    fn transition(
        &self,
        function: &'static str,
        current: &CommunityMembership,
        call: impl FnOnce(
            &bindings::Membership,
            &mut wasmtime::Store<wasmtime::StoreLimits>,
        ) -> wasmtime::Result<bindings::WitMembership>,
    ) -> Result<CommunityMembership> {
        let next = CommunityMembership::from(self.sandbox.call(function, call)?);
        same_user(function, current.user_id, &next)?;
        Ok(next)
    }

    /// The membership that a stored record stands for, or that of a user without
    /// one. [`Error::MalformedRecord`] if the record is none.
    pub(crate) fn status(
        &self,
        user_id: u64,
        stored: Option<&[u8]>,
    ) -> Result<CommunityMembership> {
        let stored = stored.map(|bytes| &bytes[..bytes.len().min(MAX_RECORD_BYTES + 1)]);
        let membership = self
            .sandbox
            .call("status", |membership, store| {
                membership.call_status(store, user_id, stored)
            })?
            .map_err(|malformed| Error::MalformedRecord {
                user_id,
                reason: malformed.reason,
            })?
            .into();
        same_user("status", user_id, &membership)?;
        Ok(membership)
    }

    /// What the policy lets signals of this user be added to.
    pub(crate) fn fan_out(&self, membership: &CommunityMembership) -> Result<FanOut> {
        let fan_out = self.sandbox.call("signal", |exports, store| {
            exports.call_signal(store, membership.into())
        })?;
        Ok(fan_out.into())
    }

    /// The record to store for this membership, read back once to see that it
    /// stands for the same.
    pub(crate) fn record(&self, membership: &CommunityMembership) -> Result<Vec<u8>> {
        const FUNCTION: &str = "serialize-membership";
        let record = self.sandbox.call(FUNCTION, |exports, store| {
            exports.call_serialize_membership(store, membership.into())
        })?;
        if record.is_empty() || record.len() > MAX_RECORD_BYTES {
            return Err(broken(
                FUNCTION,
                &format!(
                    "{} bytes; a record has 1 to {MAX_RECORD_BYTES}",
                    record.len()
                ),
            ));
        }
        match self.status(membership.user_id, Some(&record)) {
            Ok(read_back) if read_back == *membership => Ok(record),
            Ok(read_back) => Err(broken(
                FUNCTION,
                &format!("bytes for {membership} that it reads back as {read_back}"),
            )),
            Err(Error::MalformedRecord { reason, .. }) => Err(broken(
                FUNCTION,
                &format!("bytes that it can't read back: {reason}"),
            )),
            Err(error) => Err(error),
        }
    }

    /// The membership that a stored record stands for; `None` if it is malformed.
    pub(crate) fn read(&self, user_id: u64, record: &[u8]) -> Result<Option<CommunityMembership>> {
        match self.status(user_id, Some(record)) {
            Ok(membership) => Ok(Some(membership)),
            Err(Error::MalformedRecord { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What `deserialize-membership` says of a record; `None` if it is malformed. The host goes
    /// by [`status`](Self::status), which says the same and why.
    fn deserialize(&self, user_id: u64, record: &[u8]) -> Result<Option<CommunityMembership>> {
        let membership = self
            .sandbox
            .call("deserialize-membership", |exports, store| {
                exports.call_deserialize_membership(store, user_id, record)
            })?;
        Ok(membership.map(Into::into))
    }

    /// The memberships of many stored records and what the policy makes of them,
    /// one entry for each, in order; `None` for a malformed record.
    pub(crate) fn restore(
        &self,
        records: &StoredRecords,
    ) -> Result<Vec<Option<(CommunityMembership, FanOut)>>> {
        let restored = self.sandbox.call("restore", |exports, store| {
            exports.call_restore(store, &records.users, &records.lengths, &records.bytes)
        })?;
        if restored.len() != records.len() {
            return Err(broken(
                "restore",
                &format!("{} entries for {} records", restored.len(), records.len()),
            ));
        }
        records
            .users
            .iter()
            .zip(restored)
            .map(|(user_id, entry)| {
                let Some(entry) = entry else { return Ok(None) };
                let membership = CommunityMembership::from(entry.membership);
                same_user("restore", *user_id, &membership)?;
                Ok(Some((membership, FanOut::from(entry.fan_out))))
            })
            .collect()
    }
}

fn same_user(function: &'static str, user_id: u64, membership: &CommunityMembership) -> Result<()> {
    if membership.user_id == user_id {
        return Ok(());
    }
    Err(broken(
        function,
        &format!(
            "a membership of user {} for user {user_id}",
            membership.user_id
        ),
    ))
}

fn broken(function: &'static str, returned: &str) -> Error {
    Error::ComponentFailed {
        function,
        reason: format!("it broke its contract and returned {returned}"),
    }
}
