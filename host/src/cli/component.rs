//! `component inspect` and `component check`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;
use serde::Serialize;
use tidegate::{Error, SHIPPED_COMPONENT, check_component, inspect_component};

use super::output::printable;
use super::{Context, Outcome};

#[derive(Debug, Subcommand)]
pub(super) enum ComponentCommand {
    /// Show what a component imports and exports, and whether it can be used
    Inspect {
        /// The component; the one in use if none is named
        file: Option<PathBuf>,
    },
    /// Try whether a component does what the contract says
    Check {
        /// The component; the one in use if none is named
        file: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct Conformance {
    component: String,
    conforms: bool,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    failure: Option<String>,
}

#[derive(Serialize)]
struct Inspection {
    component: String,
    bytes: usize,
    sha256: String,
    imports: Vec<String>,
    exports: Vec<String>,
    refused: Option<String>,
}

pub(super) fn run(
    context: &Context,
    command: ComponentCommand,
    in_use: Option<PathBuf>,
) -> Result<Outcome> {
    match command {
        ComponentCommand::Inspect { file } => inspect(context, file.or(in_use)),
        ComponentCommand::Check { file } => check(context, file.or(in_use)),
    }
}

/// The component in `file`, or else that of this program, with what to call it.
fn read(file: Option<PathBuf>) -> Result<(String, Vec<u8>)> {
    match file {
        Some(file) => {
            let name = file.display().to_string();
            let bytes = fs::read(&file).with_context(|| format!("`{name}`"))?;
            Ok((name, bytes))
        }
        None => Ok(("of this program".to_owned(), SHIPPED_COMPONENT.to_vec())),
    }
}

fn check(context: &Context, file: Option<PathBuf>) -> Result<Outcome> {
    let (component, bytes) = read(file)?;
    let checks: Vec<Check> = check_component(&bytes)
        .into_iter()
        .map(|check| Check {
            name: check.name,
            failure: check.failure,
        })
        .collect();
    let conforms = checks.iter().all(|check| check.failure.is_none());
    let conformance = Conformance {
        component,
        conforms,
        checks,
    };
    context.output.print(&conformance, |conformance| {
        let lines = conformance.checks.iter().map(|check| match &check.failure {
            None => format!("yes  {}", check.name),
            Some(failure) => format!("NO   {}: {}", check.name, printable(failure)),
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Outcome::failed_if(!conforms))
}

fn inspect(context: &Context, file: Option<PathBuf>) -> Result<Outcome> {
    let (component, bytes) = read(file)?;
    let found = inspect_component(&bytes).map_err(|error| match error {
        Error::ComponentRefused { reason, .. } => anyhow!("`{component}`: {reason}"),
        other => other.into(),
    })?;
    let inspection = Inspection {
        component,
        bytes: bytes.len(),
        sha256: found.sha256,
        imports: found.imports,
        exports: found.exports,
        refused: found.refused,
    };
    context.output.print(&inspection, |inspection| {
        let list = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => names.join("\n           "),
        };
        let usable = match &inspection.refused {
            None => "yes".to_owned(),
            Some(reason) => format!("no: {reason}"),
        };
        format!(
            "component  {}\nbytes      {}\nsha256     {}\nimports    {}\nexports    {}\nusable     {usable}",
            inspection.component,
            inspection.bytes,
            inspection.sha256,
            list(&inspection.imports),
            list(&inspection.exports),
        )
    })?;
    Ok(Outcome::failed_if(inspection.refused.is_some()))
}
