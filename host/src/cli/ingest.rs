//! `ingest` and `profiles`: the events of files, applied in their order.

mod application;
mod inputs;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tidegate::events::{Columns, Subject};

use super::output::{counted, table};
use super::{Context, Outcome};
use application::Application;
use inputs::InputArguments;

#[derive(Debug, Args)]
pub(super) struct IngestArguments {
    #[command(flatten)]
    input: InputArguments,

    #[arg(
        long,
        value_name = "NAME",
        help = "The column of the user's id [default: user_id]"
    )]
    user_column: Option<String>,

    #[arg(
        long,
        value_name = "NAME",
        help = "The column of the item's id [default: item_id]"
    )]
    item_column: Option<String>,

    #[arg(
        long,
        value_name = "NAME",
        help = "The column of the weight [default: weight, or rating in RecBole's files; 1 where there is none]"
    )]
    weight_column: Option<String>,

    /// The column of the kind [default: kind]
    #[arg(long, value_name = "NAME", conflicts_with = "kind")]
    kind_column: Option<String>,

    /// One kind for every signal in columns
    #[arg(long)]
    kind: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ProfilesArguments {
    #[command(flatten)]
    input: InputArguments,

    #[arg(
        long,
        value_name = "NAME",
        help = "The column of the user's id [default: user_id]"
    )]
    user_column: Option<String>,
}

#[derive(Serialize)]
struct IngestSummary {
    signals: u64,
    leaves: u64,
    rejoins: u64,
    rejected: u64,
    cohort_contributions: u64,
    community_contributions: u64,
    gated_cohort_attribution: u64,
    gated_community_forwarding: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct ProfilesSummary {
    profiles: u64,
    rejected: u64,
    seconds: f64,
}

pub(super) fn ingest(context: &Context, arguments: &IngestArguments) -> Result<Outcome> {
    let subject = Subject::Events(Columns {
        user: arguments.user_column.clone(),
        item: arguments.item_column.clone(),
        weight: arguments.weight_column.clone(),
        kind: arguments.kind_column.clone(),
        fixed_kind: arguments.kind.clone(),
    });
    let inputs = arguments.input.inputs()?;
    let db = context.open()?;
    let before = db.stats();
    let started = Instant::now();
    Application::new(&db, &subject, &arguments.input)?.run(&inputs)?;
    let after = db.stats();
    let summary = IngestSummary {
        signals: after.signals - before.signals,
        leaves: after.leaves - before.leaves,
        rejoins: after.rejoins - before.rejoins,
        rejected: after.rejected - before.rejected,
        cohort_contributions: after.cohort_contributions - before.cohort_contributions,
        community_contributions: after.community_contributions - before.community_contributions,
        gated_cohort_attribution: after.gated_cohort_attribution - before.gated_cohort_attribution,
        gated_community_forwarding: after.gated_community_forwarding
            - before.gated_community_forwarding,
        seconds: started.elapsed().as_secs_f64(),
    };
    context.output.print(&summary, |summary| {
        table(&[
            vec!["signals".to_owned(), summary.signals.to_string()],
            vec!["leaves".to_owned(), summary.leaves.to_string()],
            vec!["rejoins".to_owned(), summary.rejoins.to_string()],
            vec!["rejected lines".to_owned(), summary.rejected.to_string()],
            vec![
                "contributions to cohorts".to_owned(),
                summary.cohort_contributions.to_string(),
            ],
            vec![
                "contributions to communities".to_owned(),
                summary.community_contributions.to_string(),
            ],
            vec![
                "signals held back from cohorts".to_owned(),
                summary.gated_cohort_attribution.to_string(),
            ],
            vec![
                "signals held back from communities".to_owned(),
                summary.gated_community_forwarding.to_string(),
            ],
            vec!["seconds".to_owned(), format!("{:.2}", summary.seconds)],
        ])
    })?;
    Ok(Outcome::Done)
}

pub(super) fn profiles(context: &Context, arguments: &ProfilesArguments) -> Result<Outcome> {
    let subject = Subject::Profiles(arguments.user_column.clone());
    let inputs = arguments.input.inputs()?;
    let db = context.open()?;
    let before = db.stats();
    let started = Instant::now();
    let applied = Application::new(&db, &subject, &arguments.input)?.run(&inputs)?;
    let summary = ProfilesSummary {
        profiles: applied,
        rejected: db.stats().rejected - before.rejected,
        seconds: started.elapsed().as_secs_f64(),
    };
    context.output.print(&summary, |summary| {
        format!(
            "{}, {}, {:.2} seconds",
            counted(summary.profiles, "profile", "profiles"),
            counted(summary.rejected, "rejected line", "rejected lines"),
            summary.seconds
        )
    })?;
    Ok(Outcome::Done)
}
