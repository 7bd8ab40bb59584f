//! `community join`, `community quit` and `community list`.

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use tidegate::events::parse_id;

use super::{Context, Outcome};

#[derive(Debug, Subcommand)]
pub(super) enum CommunityCommand {
    /// Add a user to a community, which is made if there is none of this name
    Join {
        /// The user
        #[arg(value_parser = parse_id)]
        user: u64,
        /// The community's name
        name: String,
    },
    /// Take a user out of a community
    Quit {
        /// The user
        #[arg(value_parser = parse_id)]
        user: u64,
        /// The community's name
        name: String,
    },
    /// List the communities
    List,
}

#[derive(Serialize)]
struct Change {
    user_id: u64,
    community: String,
    joined: bool,
}

#[derive(Serialize)]
struct Communities {
    communities: Vec<String>,
}

pub(super) fn run(context: &Context, command: CommunityCommand) -> Result<Outcome> {
    let db = match command {
        CommunityCommand::List => context.open_existing()?,
        _ => context.open()?,
    };
    let change = match command {
        CommunityCommand::Join { user, name } => {
            db.join_community(user, &name)?;
            db.flush()?;
            Change {
                user_id: user,
                community: name,
                joined: true,
            }
        }
        CommunityCommand::Quit { user, name } => {
            db.quit_community(user, &name)?;
            Change {
                user_id: user,
                community: name,
                joined: false,
            }
        }
        CommunityCommand::List => {
            let list = Communities {
                communities: db.communities(),
            };
            context
                .output
                .print(&list, |list| match list.communities.as_slice() {
                    [] => "no communities".to_owned(),
                    names => names.join("\n"),
                })?;
            return Ok(Outcome::Done);
        }
    };
    context.output.print(&change, |change| {
        let verb = if change.joined { "joined" } else { "quit" };
        format!("user {} {verb} {}", change.user_id, change.community)
    })?;
    Ok(Outcome::Done)
}
