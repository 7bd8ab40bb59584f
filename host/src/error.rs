//! Everything that can go wrong in the library, each case something that a caller
//! can act on. The texts say what, where, and what to do next.

use std::path::PathBuf;

/// What the library's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause behind a failure of storage: an I/O error, as a rule.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the store open. Nothing was changed.
    #[error(
        "the store `{}` is in use by another process; wait until that ends, or choose another store",
        path.display()
    )]
    StoreInUse {
        /// The store's folder.
        path: PathBuf,
    },

    /// The store was written in a format that this version does not know.
    /// Nothing was changed.
    #[error(
        "the store `{}` has format {found}, and this version of tidegate reads format {expected}; use the version that wrote it",
        path.display()
    )]
    StoreFormat {
        /// The store's folder, or its journal.
        path: PathBuf,
        /// The format that it says it has.
        found: String,
        /// The one format that this version reads and writes.
        expected: u32,
    },

    /// The store's files do not belong together or can't be made sense of. Nothing
    /// was changed.
    #[error("the store `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The store's folder.
        path: PathBuf,
        /// What was found, and the way out.
        reason: String,
    },

    /// Storage could not be read or written.
    #[error("could not {action}: {cause}")]
    Storage {
        /// What was tried, as in `read the profile of user 42`.
        action: String,
        /// Why it failed.
        cause: Cause,
    },

    /// The user's latest leave or rejoin did not come to its end. The gate is shut
    /// in this process; which of the two standings the disk holds is not known.
    /// Call again: a transition that succeeds settles it.
    #[error(
        "the latest leave or rejoin of user {user_id} is not durable: the gate is shut in this process, but storage may hold the standing before or after it; leave or rejoin again ({reason})"
    )]
    NotDurable {
        /// Whose transition it was.
        user_id: u64,
        /// Why it failed.
        reason: String,
    },

    /// The stored record of a user cannot be read. The gate is shut for this
    /// user; a leave or a rejoin writes a new record.
    #[error(
        "the stored membership of user {user_id} is malformed: {reason}; the gate is shut for this user until a leave or a rejoin writes a new record"
    )]
    MalformedRecord {
        /// Whose record it is.
        user_id: u64,
        /// What was found and what was expected.
        reason: String,
    },

    /// The signal was refused and had no effect.
    #[error("invalid signal: {reason}")]
    InvalidSignal {
        /// The value and the limit that it breaks.
        reason: String,
    },

    /// A name or an attribute was refused; nothing was changed.
    #[error("invalid {what}: {reason}")]
    InvalidArgument {
        /// Which argument, as in `community name`.
        what: &'static str,
        /// The value and the limit that it breaks.
        reason: String,
    },

    /// A cohort's predicate was refused; nothing was changed.
    #[error("the predicate of cohort `{cohort}` is not valid: {reason}")]
    InvalidPredicate {
        /// The cohort that was to be defined.
        cohort: String,
        /// What the expression language says about it.
        reason: String,
    },

    /// No cohort or community has this name.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// `cohort` or `community`.
        what: &'static str,
        /// The name that was asked for.
        name: String,
    },

    /// The component of rules was refused when it was loaded.
    #[error("the component {component} can't be used: {reason}")]
    ComponentRefused {
        /// Where it came from.
        component: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The component of rules failed in a call, or returned what the contract
    /// does not allow.
    #[error("the component failed in `{function}`: {reason}")]
    ComponentFailed {
        /// The function of the contract that was called.
        function: &'static str,
        /// What happened.
        reason: String,
    },

    /// A caller asked for what it was not given. Nothing was done.
    #[error("this caller was not given {what}")]
    AccessDenied {
        /// The function or the user that it asked for.
        what: String,
    },

    /// A caller was refused when it was loaded.
    #[error("the caller {caller} can't be run: {reason}")]
    CallerRefused {
        /// Where it came from.
        caller: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A caller trapped or broke one of its limits. What it had done by then stays done.
    #[error("the caller {caller} failed: {reason}")]
    CallerFailed {
        /// Where it came from.
        caller: String,
        /// What happened.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: a failure of storage while doing `action`.
    pub(crate) fn storage<E: Into<Cause>>(action: impl Into<String>) -> impl FnOnce(E) -> Error {
        let action = action.into();
        move |cause| Error::Storage {
            action,
            cause: cause.into(),
        }
    }
}
