//! `leave`, `rejoin`, `status`, `history`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Serialize;
use tidegate::events::parse_id;
use tidegate::{CommunityMembership, TidalDb};

use super::output::rfc3339;
use super::{Context, Outcome, complain};

#[derive(Debug, Args)]
pub(super) struct TransitionArguments {
    /// The users
    #[arg(value_name = "USER", required_unless_present = "from", value_parser = parse_id)]
    users: Vec<u64>,

    /// A file with more users, one id a line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// The users
    #[arg(value_name = "USER", required = true, value_parser = parse_id)]
    users: Vec<u64>,
}

#[derive(Debug, Args)]
pub(super) struct HistoryArguments {
    /// The user
    #[arg(value_name = "USER", value_parser = parse_id)]
    user: u64,
}

#[derive(Serialize)]
struct Standing {
    user_id: u64,
    status: &'static str,
    left_at_ns: Option<u64>,
    left_at: Option<String>,
}

#[derive(Serialize)]
struct History {
    user_id: u64,
    transitions: Vec<HistoryEntry>,
}

#[derive(Serialize)]
struct HistoryEntry {
    to: &'static str,
    at_ns: u64,
}

pub(super) fn leave(context: &Context, arguments: &TransitionArguments) -> Result<Outcome> {
    transition(context, arguments, TidalDb::leave_community_layer)
}

pub(super) fn rejoin(context: &Context, arguments: &TransitionArguments) -> Result<Outcome> {
    transition(context, arguments, TidalDb::rejoin_community_layer)
}

pub(super) fn status(context: &Context, arguments: &StatusArguments) -> Result<Outcome> {
    let db = context.open_existing()?;
    for_each_user(context, &arguments.users, |user_id| {
        db.community_layer_status(user_id)
    })
}

pub(super) fn history(context: &Context, arguments: &HistoryArguments) -> Result<Outcome> {
    let db = context.open_existing()?;
    let history = History {
        user_id: arguments.user,
        transitions: db
            .community_layer_history(arguments.user)?
            .iter()
            .map(|transition| HistoryEntry {
                to: transition.to.name(),
                at_ns: transition.at_ns,
            })
            .collect(),
    };
    context.output.print(&history, |history| {
        let lines: Vec<String> = history
            .transitions
            .iter()
            .map(|entry| format!("{}  {}", rfc3339(entry.at_ns), entry.to))
            .collect();
        match lines.as_slice() {
            [] => format!("user {} never left", history.user_id),
            lines => lines.join("\n"),
        }
    })?;
    Ok(Outcome::Done)
}

fn transition(
    context: &Context,
    arguments: &TransitionArguments,
    transition: fn(&TidalDb, u64) -> tidegate::Result<()>,
) -> Result<Outcome> {
    let mut users = arguments.users.clone();
    if let Some(file) = &arguments.from {
        users.extend(read_users(file)?);
    }
    let db = context.open()?;
    for_each_user(context, &users, |user_id| {
        transition(&db, user_id)?;
        db.community_layer_status(user_id)
    })
}

/// Does something for each user and prints where they stand after it. A failure
/// for one user does not keep the others from their turn.
fn for_each_user(
    context: &Context,
    users: &[u64],
    act: impl Fn(u64) -> tidegate::Result<CommunityMembership>,
) -> Result<Outcome> {
    let mut failed = false;
    for user_id in users {
        match act(*user_id) {
            Ok(membership) => print_status(context, &membership)?,
            Err(error) => {
                complain(&error.into());
                failed = true;
            }
        }
    }
    Ok(Outcome::failed_if(failed))
}

fn print_status(context: &Context, membership: &CommunityMembership) -> std::io::Result<()> {
    let standing = Standing {
        user_id: membership.user_id,
        status: membership.status.name(),
        left_at_ns: membership.left_at_ns,
        left_at: membership.left_at_ns.map(rfc3339),
    };
    context.output.print(&standing, |standing| {
        let user = format!("user {}: {}", standing.user_id, standing.status);
        match (&standing.left_at, standing.status) {
            (None, _) => user,
            (Some(left_at), "left") => format!("{user} since {left_at}"),
            (Some(left_at), _) => format!("{user}, last left {left_at}"),
        }
    })
}

/// Reads all ids before anything is done with one, so that a bad line changes
/// nothing.
fn read_users(file: &Path) -> Result<Vec<u64>> {
    let mut text = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .context("standard input")?;
    } else {
        text = fs::read_to_string(file).with_context(|| format!("`{}`", file.display()))?;
    }
    let mut users = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        match line.trim() {
            "" => {}
            id => match parse_id(id) {
                Ok(user_id) => users.push(user_id),
                Err(reason) => bail!(
                    "`{}` line {}: {reason}; nothing was changed",
                    file.display(),
                    index + 1,
                ),
            },
        }
    }
    Ok(users)
}
