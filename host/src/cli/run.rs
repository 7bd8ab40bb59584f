//! `run`.

use std::fs;
use std::io;
use std::path::{self, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde::Serialize;
use tidegate::callers::permission::{Function, Permission};
use tidegate::callers::{Caller, Limits, Streams};
use tidegate::events::parse_id;

use super::output::printable;
use super::{Context, Outcome, complain};

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The caller: a component that imports `community-layer` and exports `run`
    #[arg(value_name = "CALLER")]
    caller: PathBuf,

    /// What it is given as arguments; behind `--` if one begins with a hyphen
    #[arg(value_name = "ARG")]
    args: Vec<String>,

    /// The functions that it may call: status, signal, leave, rejoin, history
    #[arg(
        long,
        value_name = "FUNCTION",
        value_delimiter = ',',
        default_value = "status"
    )]
    allow: Vec<Function>,

    /// A user whom it may ask about and act for; all users if none is named
    #[arg(long = "user", value_name = "ID", value_parser = parse_id)]
    users: Vec<u64>,

    /// How long it may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,

    /// How much memory it may use
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    memory: u32,
}

#[derive(Serialize)]
struct Returned {
    outcome: String,
}

pub(super) fn run(context: &Context, arguments: RunArguments) -> Result<Outcome> {
    let name = format!("`{}`", arguments.caller.display());
    let bytes = fs::read(&arguments.caller).with_context(|| name.clone())?;
    // One that may only read makes no store, and one that does not fit neither.
    let writes = arguments.allow.iter().any(|function| function.writes());
    let existing = if writes {
        None
    } else {
        Some(context.open_existing()?)
    };
    let cache_folder = path::absolute(context.store().join("component-cache"))?;
    let caller = Caller::load(&bytes, &name, Some(&cache_folder))?;
    let db = Arc::new(match existing {
        Some(db) => db,
        None => context.open()?,
    });

    let mut permission = Permission::to(arguments.allow);
    if !arguments.users.is_empty() {
        permission = permission.for_users(arguments.users);
    }
    let limits = Limits {
        memory_bytes: usize::try_from(arguments.memory)? << 20,
        time: Duration::from_secs(arguments.timeout.into()),
        ..Limits::default()
    };
    let mut streams = Streams::of_process();
    if context.output.is_json() {
        // Standard output is for the one object.
        streams.stdout = Box::new(io::stderr());
    }
    let returned = caller.run(&db, permission, &limits, streams, &arguments.args);
    // What the caller did before it failed is to last too.
    db.flush()?;
    match returned? {
        Ok(outcome) => {
            context
                .output
                .print(&Returned { outcome }, |returned| lines(&returned.outcome))?;
            Ok(Outcome::Done)
        }
        Err(reason) => {
            complain(&anyhow!("{name} says: {reason}"));
            Ok(Outcome::Failed)
        }
    }
}

/// What a caller returned, without what would move a terminal's cursor.
fn lines(outcome: &str) -> String {
    let lines: Vec<String> = outcome.split('\n').map(printable).collect();
    lines.join("\n")
}
