//! `backup`, `restore`, `export` and `import`: the ways out of a store and back.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde::{Deserialize, Serialize};
use tidegate::{CommunityMembership, Error, MembershipStatus, TidalDb, Transition};

use super::output::counted;
use super::{Context, Outcome, WrongUsage, complain};

#[derive(Debug, Args)]
pub(super) struct FileArgument {
    /// The file
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Every user with a membership record, with their history, one JSON object a line
    #[arg(long, required = true)]
    memberships: bool,

    /// Where to write; standard output if none is named
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Done {
    file: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Imported {
    memberships: u64,
    refused: u64,
}

/// A line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Membership {
    user_id: u64,
    status: Status,
    left_at_ns: Option<u64>,
    transitions: Vec<Change>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Left,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    to: Status,
    at_ns: u64,
}

pub(super) fn backup(context: &Context, arguments: &FileArgument) -> Result<Outcome> {
    let file = &arguments.file;
    let db = context.open_existing()?;
    let bytes = write_file(file, |output| Ok(db.backup(output)?))?;
    let done = Done {
        file: file.display().to_string(),
        bytes,
    };
    context.output.print(&done, |done| {
        format!("wrote {}, {} bytes", done.file, done.bytes)
    })?;
    Ok(Outcome::Done)
}

pub(super) fn restore(context: &Context, arguments: &FileArgument) -> Result<Outcome> {
    let file = &arguments.file;
    let input = File::open(file).with_context(|| format!("`{}`", file.display()))?;
    let bytes = input.metadata()?.len();
    TidalDb::restore(context.store(), &mut BufReader::new(input))
        .with_context(|| format!("`{}`", file.display()))?;
    let done = Done {
        file: file.display().to_string(),
        bytes,
    };
    context.output.print(&done, |done| {
        format!("made the store from {}, {} bytes", done.file, done.bytes)
    })?;
    Ok(Outcome::Done)
}

pub(super) fn export(context: &Context, arguments: &ExportArguments) -> Result<Outcome> {
    let db = context.open_existing()?;
    let mut failed = false;
    let mut write_all = |output: &mut dyn Write| -> Result<()> {
        for user_id in db.users_with_membership() {
            match membership(&db, user_id) {
                Ok(line) => {
                    serde_json::to_writer(&mut *output, &line)?;
                    output.write_all(b"\n")?;
                }
                Err(error) => {
                    complain(&error.into());
                    failed = true;
                }
            }
        }
        Ok(output.flush()?)
    };
    match &arguments.file {
        Some(file) => drop(write_file(file, write_all)?),
        None => write_all(&mut BufWriter::new(io::stdout().lock()))?,
    }
    Ok(Outcome::failed_if(failed))
}

pub(super) fn import(context: &Context, arguments: &FileArgument) -> Result<Outcome> {
    let file = &arguments.file;
    let input = File::open(file).with_context(|| format!("`{}`", file.display()))?;
    let db = context.open()?;
    let mut imported = Imported {
        memberships: 0,
        refused: 0,
    };
    for (line, number) in BufReader::new(input).lines().zip(1_u64..) {
        let import = || -> Result<()> {
            let line: Membership = serde_json::from_str(&line?)?;
            let transitions: Vec<Transition> =
                line.transitions.iter().map(Change::to_library).collect();
            let membership = CommunityMembership {
                user_id: line.user_id,
                status: line.status.to_library(),
                left_at_ns: line.left_at_ns,
            };
            Ok(db.import_membership(&membership, &transitions)?)
        };
        let place = || format!("{}:{number}", file.display());
        match import() {
            Ok(()) => imported.memberships += 1,
            Err(error) if is_of_one_user(&error) => {
                complain(&error.context(place()));
                imported.refused += 1;
            }
            Err(error) => {
                return Err(anyhow!(
                    "{}: {error:#}; what came before is kept: {}",
                    place(),
                    counted(imported.memberships, "membership", "memberships")
                ));
            }
        }
    }
    db.flush()?;
    context.output.print(&imported, |imported| {
        format!(
            "imported {}, refused {}",
            counted(imported.memberships, "membership", "memberships"),
            imported.refused
        )
    })?;
    Ok(Outcome::failed_if(imported.refused > 0))
}

/// Whether others can be imported all the same.
fn is_of_one_user(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Error::InvalidArgument { .. } | Error::MalformedRecord { .. })
    )
}

fn membership(db: &TidalDb, user_id: u64) -> tidegate::Result<Membership> {
    let membership = db.community_layer_status(user_id)?;
    let transitions = db.community_layer_history(user_id)?;
    Ok(Membership {
        user_id,
        status: Status::of(membership.status),
        left_at_ns: membership.left_at_ns,
        transitions: transitions
            .iter()
            .map(|transition| Change {
                to: Status::of(transition.to),
                at_ns: transition.at_ns,
            })
            .collect(),
    })
}

/// Writes a file that is there in full and on disk, or not at all; returns its length.
fn write_file(file: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    if file.exists() {
        return Err(WrongUsage(format!("`{}` exists already", file.display())).into());
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = file.with_file_name(name);
    let written = || -> Result<u64> {
        let mut output = BufWriter::new(File::create(&unfinished)?);
        write(&mut output)?;
        let output = output.into_inner()?;
        output.sync_all()?;
        fs::rename(&unfinished, file)?;
        Ok(output.metadata()?.len())
    };
    let written = written();
    if written.is_err() {
        // What is wrong was said already.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("`{}`", file.display()))
}

impl Status {
    fn of(status: MembershipStatus) -> Self {
        match status {
            MembershipStatus::Active => Status::Active,
            MembershipStatus::Left => Status::Left,
        }
    }

    fn to_library(self) -> MembershipStatus {
        match self {
            Status::Active => MembershipStatus::Active,
            Status::Left => MembershipStatus::Left,
        }
    }
}

impl Change {
    fn to_library(&self) -> Transition {
        Transition {
            to: self.to.to_library(),
            at_ns: self.at_ns,
        }
    }
}
