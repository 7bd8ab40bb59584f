//! The command line: what was asked, and how it ended. A file for each subject;
//! all of them use the library as any other program would.
//!
//! - [`membership`]: leave, rejoin, status, history
//! - [`ingest`]: ingest, profiles
//! - [`cohort`], [`community`], [`signal`], [`top`], [`store`] (stats, verify)
//! - [`transfer`]: backup, restore, export, import
//! - [`component`]: what a component is
//! - [`run`](mod@run): callers
//! - [`demo`]: the whole path, shown
//! - [`output`]: lines for people, JSON for programs

mod cohort;
mod community;
mod component;
mod demo;
mod ingest;
mod membership;
mod output;
mod run;
mod signal;
mod store;
mod top;
mod transfer;

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand};
use tidegate::{Config, Error, TidalDb};

use output::{Output, printable};

/// Revocable participation in shared aggregates: users leave, and from that
/// instant nothing of theirs flows.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
struct Arguments {
    /// The folder of the store; made if it does not exist
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "TIDEGATE_STORE",
        default_value = "tidegate-data"
    )]
    store: PathBuf,

    /// A component of rules to use instead of the one that ships with the program
    #[arg(long, global = true, value_name = "FILE")]
    component: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show users leaving and rejoining while signals flow, in a temporary store
    Demo,
    /// Read events from files
    Ingest(ingest::IngestArguments),
    /// Read users' attributes from files
    Profiles(ingest::ProfilesArguments),
    /// Define and list cohorts
    #[command(subcommand)]
    Cohort(cohort::CohortCommand),
    /// Join, quit and list communities
    #[command(subcommand)]
    Community(community::CommunityCommand),
    /// Stop the fan-out of users' signals
    Leave(membership::TransitionArguments),
    /// Resume the fan-out of users' signals
    Rejoin(membership::TransitionArguments),
    /// Show where users stand
    Status(membership::StatusArguments),
    /// Show every leave and rejoin of a user
    History(membership::HistoryArguments),
    /// Add one signal and print its receipt
    Signal(signal::SignalArguments),
    /// Show the items of a scope by summed weight
    Top(top::TopArguments),
    /// Show totals since the store was made
    Stats,
    /// Read every membership record and compare it with the gate
    Verify(store::VerifyArguments),
    /// Write the whole store to a file
    Backup(transfer::FileArgument),
    /// Make a store from a backup
    Restore(transfer::FileArgument),
    /// Write memberships as JSON lines
    Export(transfer::ExportArguments),
    /// Read memberships that were exported
    Import(transfer::FileArgument),
    /// Run a caller: a program in any language, with what it is allowed and no more
    Run(run::RunArguments),
    /// Look at components of rules
    #[command(subcommand)]
    Component(component::ComponentCommand),
}

/// How a command ended that did not fail with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Something did not succeed; what it was has been said.
    Failed,
}

impl Outcome {
    fn failed_if(failed: bool) -> Self {
        if failed {
            Outcome::Failed
        } else {
            Outcome::Done
        }
    }
}

/// A command that can't be carried out as it was given.
#[derive(Debug)]
struct WrongUsage(String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// What every command is given: where the store is, and where to print.
struct Context {
    store: PathBuf,
    config: Config,
    output: Output,
}

impl Context {
    fn store(&self) -> &Path {
        &self.store
    }

    /// Opens the store, or makes one.
    fn open(&self) -> tidegate::Result<TidalDb> {
        TidalDb::from_config(self.config.clone())
    }

    /// Opens the store for a command that only reads: of a store that does not exist it
    /// would say that everybody is active, where only the path is wrong.
    fn open_existing(&self) -> Result<TidalDb> {
        let exists = ["sled", "journal", "journal.mark"]
            .iter()
            .any(|name| self.store.join(name).exists());
        if !exists {
            return Err(anyhow!(
                "there is no store in `{}`; check the path, or make one with a command that writes, such as `tidegate signal`",
                self.store.display()
            ));
        }
        Ok(self.open()?)
    }
}

/// Parses the command line, carries it out, and says how it ended: 0, 1 for a
/// failure, 2 for wrong usage.
pub(crate) fn run() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        // It would panic to say that nobody reads its warnings.
        .log_internal_errors(false)
        .with_max_level(tracing::Level::WARN)
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .init();
    match dispatch(arguments) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(error) => {
            complain(&match advice(&error) {
                Some(advice) => anyhow!("{error:#}; {advice}"),
                None => anyhow!("{error:#}"),
            });
            match error.downcast_ref::<WrongUsage>() {
                Some(_) => ExitCode::from(2),
                None => ExitCode::FAILURE,
            }
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<Outcome> {
    let mut config = Config::new(&arguments.store);
    if let Some(component) = &arguments.component {
        config = config.component(component);
    }
    let context = Context {
        store: arguments.store,
        config,
        output: Output::new(arguments.json),
    };
    match arguments.command {
        Command::Demo => demo::run(&context),
        Command::Ingest(arguments) => ingest::ingest(&context, &arguments),
        Command::Profiles(arguments) => ingest::profiles(&context, &arguments),
        Command::Cohort(command) => cohort::run(&context, command),
        Command::Community(command) => community::run(&context, command),
        Command::Leave(arguments) => membership::leave(&context, &arguments),
        Command::Rejoin(arguments) => membership::rejoin(&context, &arguments),
        Command::Status(arguments) => membership::status(&context, &arguments),
        Command::History(arguments) => membership::history(&context, &arguments),
        Command::Signal(arguments) => signal::run(&context, &arguments),
        Command::Top(arguments) => top::run(&context, arguments),
        Command::Stats => store::stats(&context),
        Command::Verify(arguments) => store::verify(&context, &arguments),
        Command::Backup(arguments) => transfer::backup(&context, &arguments),
        Command::Restore(arguments) => transfer::restore(&context, &arguments),
        Command::Export(arguments) => transfer::export(&context, &arguments),
        Command::Import(arguments) => transfer::import(&context, &arguments),
        Command::Run(arguments) => run::run(&context, arguments),
        Command::Component(command) => component::run(&context, command, arguments.component),
    }
}

/// What to do about an error, where its text can't know: the library knows no options.
fn advice(error: &anyhow::Error) -> Option<&'static str> {
    if let Some(Error::ComponentRefused { .. }) = error.downcast_ref() {
        return Some(
            "name another file, or leave out --component to use the one that ships with the program",
        );
    }
    let cause: &io::Error = error.downcast_ref()?;
    (cause.kind() == io::ErrorKind::NotFound).then_some("check the path")
}

/// Says on standard error, in one line, what went wrong.
fn complain(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let line: Vec<&str> = text.split_whitespace().collect();
    // Nobody may be reading, which is no reason to panic.
    let _ = writeln!(io::stderr(), "tidegate: {}", printable(&line.join(" ")));
}
