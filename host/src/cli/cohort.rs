//! `cohort define` and `cohort list`.

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;

use super::{Context, Outcome};

#[derive(Debug, Subcommand)]
pub(super) enum CohortCommand {
    /// Define a cohort, or give one another predicate
    Define {
        /// The cohort's name
        name: String,
        /// The predicate over users' attributes, such as `int(age) < 25`
        #[arg(value_name = "EXPR")]
        predicate: String,
    },
    /// List the cohorts with their predicates
    List,
}

#[derive(Serialize)]
struct Cohort {
    name: String,
    predicate: String,
}

#[derive(Serialize)]
struct Cohorts {
    cohorts: Vec<Cohort>,
}

pub(super) fn run(context: &Context, command: CohortCommand) -> Result<Outcome> {
    let db = match command {
        CohortCommand::List => context.open_existing()?,
        CohortCommand::Define { .. } => context.open()?,
    };
    match command {
        CohortCommand::Define { name, predicate } => {
            db.define_cohort(&name, &predicate)?;
            db.flush()?;
            context
                .output
                .print(&Cohort { name, predicate }, |cohort| {
                    format!("cohort {}: {}", cohort.name, cohort.predicate)
                })?;
        }
        CohortCommand::List => {
            let cohorts = db.cohorts().into_iter();
            let cohorts = Cohorts {
                cohorts: cohorts
                    .map(|(name, predicate)| Cohort { name, predicate })
                    .collect(),
            };
            context.output.print(&cohorts, |list| {
                let lines: Vec<String> = list
                    .cohorts
                    .iter()
                    .map(|cohort| format!("{}: {}", cohort.name, cohort.predicate))
                    .collect();
                match lines.as_slice() {
                    [] => "no cohorts".to_owned(),
                    lines => lines.join("\n"),
                }
            })?;
        }
    }
    Ok(Outcome::Done)
}
