//! The command-line tool from outside: each command, as text and as JSON, and each
//! way in which it fails.

/// `component inspect`, and components that are refused.
mod components;

/// `demo`, compared with a count of its events by plain loops.
mod demo;

/// Errors: one line, exit status 1 for a failure and 2 for wrong usage.
mod failures;

/// `leave`, `rejoin`, `status`, `history`.
mod membership;

/// `signal`, `top`, `cohort`, `community`.
mod scopes;

/// `stats`, `verify`, and where the store is.
mod store;
