//! Readers of event files: signals, leaves, rejoins, joins, quits and profiles, one
//! after the other, from JSON lines, CSV, TSV and RecBole's atomic files.
//!
//! - `jsonl`: an object a line
//! - `delimited`: columns under a header
//! - `id`: ids of 64 bits, exactly
//!
//! A reader says what a line means or why it means nothing. What to do about it is
//! left to who reads.

mod delimited;
mod id;
mod jsonl;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::ledger::Profile;

pub use delimited::Columns;
pub use id::parse_id;

/// One event of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A user did something with an item.
    Signal {
        /// The user.
        user_id: u64,
        /// The item.
        item_id: u64,
        /// What the user did.
        kind: Cow<'a, str>,
        /// How much it counts.
        weight: f64,
    },
    /// A user leaves the community layer.
    Leave {
        /// The user.
        user_id: u64,
    },
    /// A user rejoins the community layer.
    Rejoin {
        /// The user.
        user_id: u64,
    },
    /// A user joins a community.
    Join {
        /// The user.
        user_id: u64,
        /// The community's name.
        community: Cow<'a, str>,
    },
    /// A user quits a community.
    Quit {
        /// The user.
        user_id: u64,
        /// The community's name.
        community: Cow<'a, str>,
    },
    /// A user's attributes, all of them.
    Profile {
        /// The user.
        user_id: u64,
        /// The attributes.
        attributes: Profile,
    },
}

/// A format of event files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object a line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// RecBole's atomic files: tab-separated, with a header of `name:type`.
    Recbole,
}

impl Format {
    /// The format that a file's extension stands for, or the one before `.gz`.
    pub fn of_file(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "gz" => Self::of_file(Path::new(path.file_stem()?)),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            "inter" | "user" => Some(Format::Recbole),
            _ => None,
        }
    }
}

/// What the lines of an input are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Signals in columns, or events of all types in JSON lines.
    Events(Columns),
    /// Users with their attributes; the column that holds the user's id is named
    /// here, by default `user_id`.
    Profiles(Option<String>),
}

/// A line that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1; of a record over several lines, that of the first.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// What it says.
    pub text: Vec<u8>,
}

/// Why no event could be read.
#[derive(Debug)]
pub enum ReadError {
    /// This line means nothing; the next call reads the one behind it.
    Line(BadLine),
    /// The header does not fit; nothing can be read.
    Header(String),
    /// The input failed.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Line(bad) => write!(f, "line {}: {}", bad.line, bad.reason),
            ReadError::Header(reason) => write!(f, "header: {reason}"),
            ReadError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

/// The events of one input, in their order.
///
/// ```
/// use tidegate::events::{Columns, Event, EventReader, Format, Subject};
///
/// let input = br#"{"type":"leave","user_id":"18446744073709551615"}"#;
/// let subject = Subject::Events(Columns::default());
/// let mut events = EventReader::new(&input[..], Format::Jsonl, &subject)?;
/// assert_eq!(events.next_event()?, Some(Event::Leave { user_id: u64::MAX }));
/// assert_eq!(events.next_event()?, None);
/// # Ok::<(), tidegate::events::ReadError>(())
/// ```
pub struct EventReader<R> {
    lines: Lines<R>,
}

enum Lines<R> {
    Jsonl(jsonl::Reader<WithoutMark<R>>),
    Delimited(delimited::Reader<WithoutMark<R>>),
}

impl<R: BufRead> EventReader<R> {
    /// Reads the header, if the format has one.
    pub fn new(input: R, format: Format, subject: &Subject) -> Result<Self, ReadError> {
        let input = without_mark(input)?;
        let lines = match format {
            Format::Jsonl => Lines::Jsonl(jsonl::Reader::new(input, subject)),
            _ => Lines::Delimited(delimited::Reader::new(input, format, subject)?),
        };
        Ok(EventReader { lines })
    }

    /// The next event; `None` at the end of the input.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        match &mut self.lines {
            Lines::Jsonl(reader) => reader.next_event(),
            Lines::Delimited(reader) => reader.next_event(),
        }
    }

    /// Where the event read last began: the number of its line, from 1.
    pub fn line(&self) -> u64 {
        match &self.lines {
            Lines::Jsonl(reader) => reader.line(),
            Lines::Delimited(reader) => reader.line(),
        }
    }

    /// The text of the event read last.
    pub fn text(&self) -> Vec<u8> {
        match &self.lines {
            Lines::Jsonl(reader) => reader.text(),
            Lines::Delimited(reader) => reader.text(),
        }
    }
}

impl<R> fmt::Debug for EventReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader").finish_non_exhaustive()
    }
}

/// An input without the byte order mark that it may begin with.
type WithoutMark<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

fn without_mark<R: BufRead>(mut input: R) -> io::Result<WithoutMark<R>> {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    let mut start = Vec::new();
    (&mut input)
        .take(MARK.len() as u64)
        .read_to_end(&mut start)?;
    if start == MARK {
        start.clear();
    }
    Ok(io::Cursor::new(start).chain(input))
}
