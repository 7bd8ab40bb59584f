//! `stats` and `verify`.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::output::table;
use super::{Context, Outcome, complain};

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Give up transitions that were lost, and malformed records that name no user: the
    /// gate opens for users of whom nothing else is known
    #[arg(long)]
    accept_loss: bool,
}

#[derive(Serialize)]
struct Stats {
    signals: u64,
    leaves: u64,
    rejoins: u64,
    rejected: u64,
    cohort_contributions: u64,
    community_contributions: u64,
    gated_cohort_attribution: u64,
    gated_community_forwarding: u64,
    left_users: u64,
    malformed_records: u64,
}

#[derive(Serialize)]
struct Verification {
    records: u64,
    left: u64,
    malformed: Vec<u64>,
    unattributed: u64,
    lost: u64,
    restored: u64,
    disagreeing: Vec<u64>,
}

pub(super) fn stats(context: &Context) -> Result<Outcome> {
    let stats = context.open_existing()?.stats();
    let stats = Stats {
        signals: stats.signals,
        leaves: stats.leaves,
        rejoins: stats.rejoins,
        rejected: stats.rejected,
        cohort_contributions: stats.cohort_contributions,
        community_contributions: stats.community_contributions,
        gated_cohort_attribution: stats.gated_cohort_attribution,
        gated_community_forwarding: stats.gated_community_forwarding,
        left_users: stats.left_users,
        malformed_records: stats.malformed_records,
    };
    context.output.print(&stats, |stats| {
        let rows = [
            ("signals", stats.signals),
            ("leaves", stats.leaves),
            ("rejoins", stats.rejoins),
            ("rejected lines", stats.rejected),
            ("contributions to cohorts", stats.cohort_contributions),
            (
                "contributions to communities",
                stats.community_contributions,
            ),
            (
                "signals held back from cohorts",
                stats.gated_cohort_attribution,
            ),
            (
                "signals held back from communities",
                stats.gated_community_forwarding,
            ),
            ("users who have left", stats.left_users),
            ("malformed records", stats.malformed_records),
        ];
        table(&rows.map(|(name, value)| vec![name.to_owned(), value.to_string()]))
    })?;
    Ok(Outcome::Done)
}

pub(super) fn verify(context: &Context, arguments: &VerifyArguments) -> Result<Outcome> {
    let mut db = context.open_existing()?;
    if arguments.accept_loss && db.accept_loss()? > 0 {
        drop(db);
        db = context.open_existing()?;
    }
    let found = db.verify()?;
    let verification = Verification {
        records: found.records,
        left: found.left,
        malformed: found.malformed.clone(),
        unattributed: found.unattributed,
        lost: found.lost,
        restored: found.restored,
        disagreeing: found.disagreeing.clone(),
    };
    context.output.print(&verification, |found| {
        format!(
            "{} records, {} of users who have left, {} malformed",
            found.records,
            found.left,
            found.malformed.len()
        )
    })?;
    for user_id in &found.malformed {
        complain(&anyhow::anyhow!(
            "the record of user {user_id} is malformed; the gate is shut for this user until a leave or a rejoin writes a new one"
        ));
    }
    if found.unattributed > 0 {
        complain(&anyhow::anyhow!(
            "{} malformed records name no user; give them up with `verify --accept-loss`",
            found.unattributed
        ));
    }
    if found.lost > 0 {
        complain(&anyhow::anyhow!(
            "{} transitions were lost; the gate is shut for every user who has no later one",
            found.lost
        ));
    }
    if found.restored > 0 {
        complain(&anyhow::anyhow!(
            "histories had lost {} transitions; they were written again from the journal",
            found.restored
        ));
    }
    for user_id in &found.disagreeing {
        complain(&anyhow::anyhow!(
            "the gate is not as the record of user {user_id} says; leave or rejoin again"
        ));
    }
    Ok(Outcome::failed_if(!found.is_clean()))
}
