//! `ingest` and `profiles`: the events of files, applied in their order.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tidegate::events::{BadLine, Columns, Event, EventReader, Format, ReadError, Subject};
use tidegate::{Error, Signal, TidalDb};

use super::output::{counted, table};
use super::{Context, Outcome, WrongUsage};

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

#[derive(Debug, Args)]
struct InputArguments {
    /// The files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The format of all files, instead of what their extensions say
    #[arg(long)]
    format: Option<FormatArgument>,

    /// What to do about a line that means nothing
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    on_error: OnError,

    /// Where to collect the lines that were skipped, as JSON lines
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    Jsonl,
    Csv,
    Tsv,
    Recbole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// Stop; what came before is kept
    Stop,
    /// Go on with the next line
    Skip,
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
    Ingestion::new(&db, &subject, &arguments.input)?.run(&inputs, apply)?;
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
    let applied = Ingestion::new(&db, &subject, &arguments.input)?.run(&inputs, apply_profile)?;
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

fn apply(db: &TidalDb, event: &Event<'_>) -> Result<(), Error> {
    match event {
        Event::Signal {
            user_id,
            item_id,
            kind,
            weight,
        } => db
            .signal_with_context(
                *user_id,
                &Signal {
                    item_id: *item_id,
                    kind,
                    weight: *weight,
                },
            )
            .map(drop),
        Event::Leave { user_id } => db.leave_community_layer(*user_id),
        Event::Rejoin { user_id } => db.rejoin_community_layer(*user_id),
        Event::Join { user_id, community } => db.join_community(*user_id, community),
        Event::Quit { user_id, community } => db.quit_community(*user_id, community),
        Event::Profile {
            user_id,
            attributes,
        } => db.set_profile(*user_id, attributes),
    }
}

fn apply_profile(db: &TidalDb, event: &Event<'_>) -> Result<(), Error> {
    match event {
        Event::Profile { .. } => apply(db, event),
        _ => Err(Error::InvalidArgument {
            what: "profile",
            reason: "the line is an event of another type; `ingest` takes those".to_owned(),
        }),
    }
}

/// An input with its format.
struct Input {
    path: PathBuf,
    format: Format,
}

impl Input {
    fn is_standard_input(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    fn open(&self) -> Result<Box<dyn BufRead>> {
        if self.is_standard_input() {
            return Ok(Box::new(io::stdin().lock()));
        }
        let file = File::open(&self.path).with_context(|| format!("`{self}`"))?;
        Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_standard_input() {
            f.write_str("standard input")
        } else {
            self.path.display().fmt(f)
        }
    }
}

impl InputArguments {
    fn inputs(&self) -> Result<Vec<Input>> {
        if self.rejects.is_some() && self.on_error == OnError::Stop {
            return Err(WrongUsage("--rejects needs --on-error skip".to_owned()).into());
        }
        let inputs = self
            .files
            .iter()
            .map(|path| self.input(path))
            .collect::<Result<Vec<_>>>()?;
        self.check_rejects(&inputs)?;
        Ok(inputs)
    }

    /// Whatever is in the file of rejects is lost, which must not be an input.
    fn check_rejects(&self, inputs: &[Input]) -> Result<()> {
        let Some(Ok(rejects)) = self.rejects.as_ref().map(fs::canonicalize) else {
            return Ok(());
        };
        let is_rejects =
            |input: &&Input| fs::canonicalize(&input.path).is_ok_and(|path| path == rejects);
        match inputs.iter().find(is_rejects) {
            Some(input) => Err(WrongUsage(format!(
                "--rejects would overwrite the input `{input}`; name another file"
            ))
            .into()),
            None => Ok(()),
        }
    }

    fn input(&self, path: &Path) -> Result<Input> {
        let format = match self.format {
            Some(FormatArgument::Jsonl) => Some(Format::Jsonl),
            Some(FormatArgument::Csv) => Some(Format::Csv),
            Some(FormatArgument::Tsv) => Some(Format::Tsv),
            Some(FormatArgument::Recbole) => Some(Format::Recbole),
            None if path.as_os_str() == "-" => Some(Format::Jsonl),
            None => Format::of_file(path),
        };
        let Some(format) = format else {
            return Err(WrongUsage(format!(
                "the format of `{}` is not known from its extension; name it with --format",
                path.display()
            ))
            .into());
        };
        // Before anything is read: a name that is wrong should cost nothing. A named
        // pipe can be opened once only.
        if path.as_os_str() != "-" {
            let is_file = |metadata: fs::Metadata| metadata.is_file();
            let found = match fs::metadata(path).map(is_file) {
                Ok(true) => File::open(path).map(drop),
                other => other.map(drop),
            };
            found.with_context(|| format!("`{}`", path.display()))?;
        }
        Ok(Input {
            path: path.to_owned(),
            format,
        })
    }
}

type Apply = fn(&TidalDb, &Event<'_>) -> Result<(), Error>;

/// One run over some inputs.
struct Ingestion<'a> {
    db: &'a TidalDb,
    subject: &'a Subject,
    on_error: OnError,
    rejects: Option<BufWriter<File>>,
    /// The lines that took effect so far.
    applied: u64,
}

impl<'a> Ingestion<'a> {
    fn new(db: &'a TidalDb, subject: &'a Subject, arguments: &InputArguments) -> Result<Self> {
        let rejects = match &arguments.rejects {
            Some(path) => Some(BufWriter::new(
                File::create(path).with_context(|| format!("`{}`", path.display()))?,
            )),
            None => None,
        };
        Ok(Ingestion {
            db,
            subject,
            on_error: arguments.on_error,
            rejects,
            applied: 0,
        })
    }

    /// Applies every event and makes all of it durable; returns how many lines took
    /// effect.
    fn run(mut self, inputs: &[Input], apply: Apply) -> Result<u64> {
        let progress = progress(inputs);
        let read = inputs
            .iter()
            .try_for_each(|input| self.read(input, &progress, apply));
        progress.finish_and_clear();
        let flushed = self.db.flush().map_err(anyhow::Error::from);
        if let Some(rejects) = &mut self.rejects {
            rejects.flush().context("the file of rejects")?;
        }
        let applied = counted(self.applied, "line", "lines");
        match (read, flushed) {
            (Ok(()), Ok(())) => Ok(self.applied),
            (Err(error), Ok(())) if error.is::<WrongUsage>() && self.applied == 0 => Err(error),
            (Err(error), Ok(())) => Err(anyhow!(
                "{error:#}; what came before took effect and is kept: {applied}"
            )),
            (Ok(()), Err(error)) => Err(anyhow!("{error:#}; what was read may be lost: {applied}")),
            (Err(error), Err(flush_error)) => Err(anyhow!(
                "{error:#}; what came before may be lost: {applied} ({flush_error:#})"
            )),
        }
    }

    fn read(&mut self, input: &Input, progress: &ProgressBar, apply: Apply) -> Result<()> {
        let source = BufReader::with_capacity(1 << 16, progress.wrap_read(input.open()?));
        let mut events = EventReader::new(source, input.format, self.subject)
            .map_err(|error| header_error(input, error))?;
        loop {
            let refused = match events.next_event() {
                Ok(None) => return Ok(()),
                Ok(Some(event)) => match apply(self.db, &event) {
                    Ok(()) => {
                        self.applied += 1;
                        continue;
                    }
                    Err(error) if is_refusal(&error) => BadLine {
                        line: events.line(),
                        reason: error.to_string(),
                        text: events.text(),
                    },
                    Err(error) => {
                        return Err(error).with_context(|| format!("{input}:{}", events.line()));
                    }
                },
                Err(ReadError::Line(bad)) => bad,
                Err(error) => return Err(error).with_context(|| input.to_string()),
            };
            self.reject(input, &refused)?;
        }
    }

    fn reject(&mut self, input: &Input, bad: &BadLine) -> Result<()> {
        self.db.count_rejected();
        if self.on_error == OnError::Stop {
            return Err(anyhow!("{input}:{}: {}", bad.line, bad.reason));
        }
        if let Some(rejects) = &mut self.rejects {
            let reject = Reject {
                file: input.to_string(),
                line: bad.line,
                reason: &bad.reason,
                text: String::from_utf8_lossy(&bad.text).into_owned(),
            };
            serde_json::to_writer(&mut *rejects, &reject).context("the file of rejects")?;
            rejects.write_all(b"\n").context("the file of rejects")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Reject<'a> {
    file: String,
    line: u64,
    reason: &'a str,
    text: String,
}

/// A header that does not fit is a matter of which columns were named.
fn header_error(input: &Input, error: ReadError) -> anyhow::Error {
    match error {
        ReadError::Header(reason) => WrongUsage(format!(
            "{input}: header: {reason} (--user-column, --item-column, --weight-column, --kind-column, --kind)"
        ))
        .into(),
        other => anyhow::Error::from(other).context(input.to_string()),
    }
}

/// Whether the event was at fault, not the store.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidSignal { .. } | Error::InvalidArgument { .. } | Error::NotFound { .. }
    )
}

/// A bar over the bytes of all inputs, shown on a terminal only.
fn progress(inputs: &[Input]) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let size = |input: &Input| {
        let metadata = fs::metadata(&input.path).ok()?;
        metadata.is_file().then_some(metadata.len())
    };
    let template = match inputs.iter().map(size).sum::<Option<u64>>() {
        Some(bytes) => {
            let bar = ProgressBar::new(bytes);
            return with_style(
                bar,
                "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            );
        }
        None => "{spinner} {bytes}, {bytes_per_sec}",
    };
    with_style(ProgressBar::new_spinner(), template)
}

fn with_style(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
