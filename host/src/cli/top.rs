//! `top`: the items of a scope by summed weight.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tidegate::Scope;

use super::output::{printable, table};
use super::{Context, Outcome};

#[derive(Debug, Args)]
pub(super) struct TopArguments {
    /// The cohort whose items to show, instead of everybody's
    #[arg(long, value_name = "NAME", conflicts_with = "community")]
    cohort: Option<String>,

    /// The community whose items to show, instead of everybody's
    #[arg(long, value_name = "NAME")]
    community: Option<String>,

    /// Only signals of this kind
    #[arg(long)]
    kind: Option<String>,

    /// How many rows at the most
    #[arg(long, default_value_t = 10)]
    limit: usize,
}

#[derive(Serialize)]
struct Ranking {
    scope: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    item_id: u64,
    kind: String,
    count: u64,
    weight: f64,
}

pub(super) fn run(context: &Context, arguments: TopArguments) -> Result<Outcome> {
    let scope = match (arguments.cohort, arguments.community) {
        (Some(name), _) => Scope::Cohort(name),
        (None, Some(name)) => Scope::Community(name),
        (None, None) => Scope::Base,
    };
    let db = context.open_existing()?;
    let rows = db.top(&scope, arguments.kind.as_deref(), arguments.limit)?;
    let ranking = Ranking {
        scope: scope.to_string(),
        rows: rows
            .into_iter()
            .map(|row| Row {
                item_id: row.item_id,
                kind: row.kind,
                count: row.count,
                weight: row.weight,
            })
            .collect(),
    };
    context.output.print(&ranking, |ranking| {
        let header = ["item", "kind", "count", "weight"]
            .map(str::to_owned)
            .to_vec();
        let rows = ranking.rows.iter().map(|row| {
            vec![
                row.item_id.to_string(),
                printable(&row.kind),
                row.count.to_string(),
                row.weight.to_string(),
            ]
        });
        let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
        format!("{}\n{}", ranking.scope, table(&rows))
    })?;
    Ok(Outcome::Done)
}
