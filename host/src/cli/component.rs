//! `component inspect`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;
use serde::Serialize;
use tidegate::{Error, SHIPPED_COMPONENT, inspect_component};

use super::{Context, Outcome};

#[derive(Debug, Subcommand)]
pub(super) enum ComponentCommand {
    /// Show what a component imports and exports, and whether it can be used
    Inspect {
        /// The component; the one in use if none is named
        file: Option<PathBuf>,
    },
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
    let ComponentCommand::Inspect { file } = command;
    let (component, bytes) = match file.or(in_use) {
        Some(file) => {
            let name = file.display().to_string();
            let bytes = fs::read(&file).with_context(|| format!("`{name}`"))?;
            (name, bytes)
        }
        None => ("of this program".to_owned(), SHIPPED_COMPONENT.to_vec()),
    };
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
