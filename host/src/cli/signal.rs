//! `signal`: one signal, and its receipt.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tidegate::Signal;
use tidegate::events::parse_id;

use super::output::counted;
use super::{Context, Outcome};

#[derive(Debug, Args)]
pub(super) struct SignalArguments {
    /// The user
    #[arg(value_name = "USER", value_parser = parse_id)]
    user: u64,

    /// The item
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    item: u64,

    /// What the user did, such as `view` or `like`
    #[arg(long)]
    kind: String,

    /// How much it counts
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    weight: f64,
}

#[derive(Serialize)]
struct Receipt {
    cohorts: u32,
    communities: u32,
    gated: bool,
}

pub(super) fn run(context: &Context, arguments: &SignalArguments) -> Result<Outcome> {
    let db = context.open()?;
    let receipt = db.signal_with_context(
        arguments.user,
        &Signal {
            item_id: arguments.item,
            kind: &arguments.kind,
            weight: arguments.weight,
        },
    )?;
    // Durable before it is acknowledged: the process ends with this one signal.
    db.flush()?;
    let receipt = Receipt {
        cohorts: receipt.cohorts,
        communities: receipt.communities,
        gated: receipt.gated,
    };
    context.output.print(&receipt, |receipt| {
        let gated = if receipt.gated {
            "; held back by the gate"
        } else {
            ""
        };
        format!(
            "added to the base ledger, {} and {}{gated}",
            counted(receipt.cohorts.into(), "cohort", "cohorts"),
            counted(receipt.communities.into(), "community", "communities")
        )
    })?;
    Ok(Outcome::Done)
}
