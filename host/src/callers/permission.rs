//! What a caller was given: some functions, for some users. Everything else is denied.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A function of the interface `community-layer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Where a user stands.
    Status,
    /// One signal of a user.
    Signal,
    /// A user leaves.
    Leave,
    /// A user comes back.
    Rejoin,
    /// Every leave and rejoin of a user.
    History,
}

impl Function {
    /// All of them, in the order in which they are named to people.
    pub const ALL: [Function; 5] = [
        Function::Status,
        Function::Signal,
        Function::Leave,
        Function::Rejoin,
        Function::History,
    ];

    /// The name that the contract gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Function::Status => "status",
            Function::Signal => "signal",
            Function::Leave => "leave",
            Function::Rejoin => "rejoin",
            Function::History => "history",
        }
    }

    /// Whether it changes the store.
    pub const fn writes(self) -> bool {
        matches!(self, Function::Signal | Function::Leave | Function::Rejoin)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Function {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Function::ALL
            .into_iter()
            .find(|function| function.name() == name)
            .ok_or_else(|| {
                let names = Function::ALL.map(Function::name);
                format!("one of {} expected", names.join(", "))
            })
    }
}

/// What a caller may do.
///
/// ```
/// use tidegate::callers::permission::{Function, Permission};
///
/// let permission = Permission::to([Function::Status]).for_users([42]);
/// assert!(permission.check(Function::Status, 42).is_ok());
/// assert!(permission.check(Function::Status, 43).is_err());
/// assert!(permission.check(Function::Leave, 42).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    functions: BTreeSet<Function>,
    /// `None` is all users.
    users: Option<BTreeSet<u64>>,
}

impl Permission {
    /// These functions, for all users.
    pub fn to(functions: impl IntoIterator<Item = Function>) -> Self {
        Permission {
            functions: functions.into_iter().collect(),
            users: None,
        }
    }

    /// The same functions, for these users alone.
    #[must_use]
    pub fn for_users(mut self, users: impl IntoIterator<Item = u64>) -> Self {
        self.users = Some(users.into_iter().collect());
        self
    }

    /// [`Error::AccessDenied`] if this function was not given, or not for this user.
    pub fn check(&self, function: Function, user_id: u64) -> Result<()> {
        let denied = |what: String| Error::AccessDenied { what };
        if !self.functions.contains(&function) {
            return Err(denied(format!("the function `{function}`")));
        }
        match &self.users {
            Some(users) if !users.contains(&user_id) => Err(denied(format!("user {user_id}"))),
            _ => Ok(()),
        }
    }
}
