//! Scopes: what aggregates are kept for, and the numbers that stand for them in
//! keys. A number is given once and never changes.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};
use crate::storage::{Batch, Partition, Storage};

/// The longest name of a cohort or a community, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// What an aggregate is kept for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Everybody's signals; never gated.
    Base,
    /// The signals of a cohort's members.
    Cohort(String),
    /// The signals of those who joined a community.
    Community(String),
}

impl Scope {
    /// The key under which the store knows it, such as `community::film`.
    fn key(&self) -> String {
        match self {
            Scope::Base => "base".to_owned(),
            Scope::Cohort(name) => format!("cohort::{name}"),
            Scope::Community(name) => format!("community::{name}"),
        }
    }
}

/// As in `cohort:young`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Base => f.write_str("base"),
            Scope::Cohort(name) => write!(f, "cohort:{name}"),
            Scope::Community(name) => write!(f, "community:{name}"),
        }
    }
}

/// The number of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopeId(pub(crate) u32);

impl ScopeId {
    pub(crate) const BASE: ScopeId = ScopeId(0);

    pub(crate) fn entity(self) -> EntityId {
        EntityId(self.0.into())
    }
}

/// All scopes with their numbers.
#[derive(Debug)]
pub(super) struct Scopes {
    ids: BTreeMap<String, ScopeId>,
}

impl Scopes {
    pub(super) fn load(storage: &Storage) -> Result<Self> {
        let mut ids = BTreeMap::from([(Scope::Base.key(), ScopeId::BASE)]);
        storage
            .partition(Partition::System)
            .scan(b"", |key, value| {
                if let Some((EntityId(id), Tag::Scope, b"")) = parse_key(key) {
                    let id = u32::try_from(id)
                        .map_err(Error::storage(format!("read the number of scope {id}")))?;
                    let name = str::from_utf8(value)
                        .map_err(Error::storage(format!("read the name of scope {id}")))?;
                    ids.insert(name.to_owned(), ScopeId(id));
                }
                Ok(())
            })?;
        Ok(Scopes { ids })
    }

    pub(super) fn get(&self, scope: &Scope) -> Option<ScopeId> {
        self.ids.get(&scope.key()).copied()
    }

    /// The number of a scope, a new one if it has none; that is added to the
    /// batch, and counts once [`Scopes::insert`] is called.
    pub(super) fn get_or_assign(&self, scope: &Scope, batch: &mut Batch) -> ScopeId {
        if let Some(id) = self.get(scope) {
            return id;
        }
        let highest = self.ids.values().max().copied().unwrap_or(ScopeId::BASE);
        let id = ScopeId(highest.0 + 1);
        batch.put(
            Partition::System,
            encode_key(id.entity(), Tag::Scope, b""),
            scope.key().into_bytes(),
        );
        id
    }

    pub(super) fn insert(&mut self, scope: &Scope, id: ScopeId) {
        self.ids.insert(scope.key(), id);
    }

    /// The names of all communities, in order.
    pub(super) fn communities(&self) -> Vec<String> {
        let prefix = Scope::Community(String::new()).key();
        self.ids
            .keys()
            .filter_map(|key| key.strip_prefix(&prefix).map(str::to_owned))
            .collect()
    }
}

/// Checks the name of a cohort or a community.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!(
            "length {} exceeds the maximum of {MAX_NAME_BYTES} bytes",
            name.len()
        )
    } else if name.chars().any(char::is_control) {
        "it holds a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::InvalidArgument { what, reason })
}
