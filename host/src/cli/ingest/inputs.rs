//! The inputs of a command: which files, in which format, and how far they are read.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use tidegate::events::Format;

use crate::cli::WrongUsage;

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

#[derive(Debug, Args)]
pub(super) struct InputArguments {
    /// The files, packed with gzip or not; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The format of all files, instead of what their extensions say
    #[arg(long)]
    format: Option<FormatArgument>,

    /// What to do about a line that means nothing
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    pub(super) on_error: OnError,

    /// Where to collect the lines that were skipped, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(super) rejects: Option<PathBuf>,

    /// Go on where an earlier run over the same files was interrupted
    #[arg(long)]
    pub(super) resume: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    Jsonl,
    Csv,
    Tsv,
    Recbole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnError {
    /// Stop; what came before is kept
    Stop,
    /// Go on with the next line
    Skip,
}

/// An input with its format.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) format: Format,
}

impl Input {
    fn is_standard_input(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The name under which the store knows how far the input was read: the same
    /// wherever the program is started.
    pub(super) fn name(&self) -> String {
        let path = match fs::canonicalize(&self.path) {
            Ok(path) if !self.is_standard_input() => path,
            _ => self.path.clone(),
        };
        path.to_string_lossy().into_owned()
    }

    /// What is in the input, unpacked if it begins as gzip does. The bar moves by the bytes
    /// that are read of the file.
    pub(super) fn open(&self, bar: &ProgressBar) -> Result<Box<dyn BufRead>> {
        let source: Box<dyn Read> = if self.is_standard_input() {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(&self.path).with_context(|| format!("`{self}`"))?)
        };
        let mut packed = buffered(bar.wrap_read(source));
        let start = packed.fill_buf().with_context(|| format!("`{self}`"))?;
        if start.starts_with(&GZIP_MAGIC) {
            return Ok(Box::new(buffered(MultiGzDecoder::new(packed))));
        }
        Ok(Box::new(packed))
    }
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(1 << 16, source)
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
    pub(super) fn inputs(&self) -> Result<Vec<Input>> {
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

/// A bar over the bytes of all inputs, shown on a terminal only.
pub(super) fn progress(inputs: &[Input]) -> ProgressBar {
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
