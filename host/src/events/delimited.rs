//! Columns under a header: CSV, TSV, and RecBole's atomic files.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use csv::{ByteRecord, ReaderBuilder};
use serde_json::Value;

use super::{BadLine, Event, Format, ReadError, Subject, id};
use crate::ledger::Profile;

/// Which columns of a file of signals hold what. What is not named is looked for
/// under its usual name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The user's id; `user_id` unless named.
    pub user: Option<String>,
    /// The item's id; `item_id` unless named.
    pub item: Option<String>,
    /// The weight; unless named, `weight`, or `rating` in RecBole's files, and 1
    /// if there is no such column.
    pub weight: Option<String>,
    /// The kind; `kind` unless named.
    pub kind: Option<String>,
    /// One kind for every signal, whatever the columns say.
    pub fixed_kind: Option<String>,
}

pub(super) struct Reader<R> {
    records: csv::Reader<LineByLine<R>>,
    record: ByteRecord,
    format: Format,
    header: Vec<Column>,
    row: Row,
}

struct Column {
    name: String,
    kind: ColumnType,
}

/// The types of RecBole's atomic files. Columns of other formats hold tokens.
#[derive(Clone, Copy)]
enum ColumnType {
    Token,
    TokenSequence,
    Float,
    FloatSequence,
}

/// What a row means, by the numbers of its columns.
enum Row {
    Signal {
        user: usize,
        item: usize,
        weight: Option<usize>,
        kind: Kind,
    },
    Profile {
        user: usize,
    },
}

enum Kind {
    Fixed(String),
    Column(usize),
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, format: Format, subject: &Subject) -> Result<Self, ReadError> {
        let mut records = ReaderBuilder::new()
            .delimiter(if format == Format::Csv { b',' } else { b'\t' })
            // Atomic files have no quotes: one there is a character like others.
            .quoting(format != Format::Recbole)
            .has_headers(false)
            .flexible(true)
            .from_reader(LineByLine::new(input));
        let mut record = ByteRecord::new();
        if !records.read_byte_record(&mut record).map_err(io_error)? {
            return Err(ReadError::Header(
                "it is missing; the input is empty".to_owned(),
            ));
        }
        let header = record
            .iter()
            .map(|field| Column::parse(field, format))
            .collect::<Result<Vec<_>, _>>()
            .map_err(ReadError::Header)?;
        for (index, column) in header.iter().enumerate() {
            if find(&header, &column.name) != Some(index) {
                return Err(ReadError::Header(format!(
                    "two columns are named `{}`",
                    column.name
                )));
            }
        }
        let row = Row::of(&header, format, subject).map_err(ReadError::Header)?;
        Ok(Reader {
            records,
            record,
            format,
            header,
            row,
        })
    }

    pub(super) fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        if !self
            .records
            .read_byte_record(&mut self.record)
            .map_err(io_error)?
        {
            return Ok(None);
        }
        match self.parse() {
            Ok(event) => Ok(Some(event)),
            Err(reason) => Err(ReadError::Line(BadLine {
                line: self.line(),
                reason,
                text: self.text(),
            })),
        }
    }

    fn parse(&self) -> Result<Event<'_>, String> {
        if self.record.len() != self.header.len() {
            return Err(format!(
                "{} columns, and the header has {}",
                self.record.len(),
                self.header.len()
            ));
        }
        match &self.row {
            Row::Signal {
                user,
                item,
                weight,
                kind,
            } => Ok(Event::Signal {
                user_id: self.id(*user)?,
                item_id: self.id(*item)?,
                kind: match kind {
                    Kind::Fixed(kind) => Cow::Borrowed(kind),
                    Kind::Column(column) => Cow::Borrowed(self.text_of(*column)?),
                },
                weight: match weight {
                    Some(column) => self.float(*column)?,
                    None => 1.0,
                },
            }),
            Row::Profile { user } => Ok(Event::Profile {
                user_id: self.id(*user)?,
                attributes: self.attributes(*user)?,
            }),
        }
    }

    fn attributes(&self, user: usize) -> Result<Profile, String> {
        let mut attributes = Profile::new();
        for (index, column) in self.header.iter().enumerate() {
            if index != user {
                let text = self.text_of(index)?;
                let value = column.kind.value(text).ok_or_else(|| {
                    format!(
                        "column `{}` holds `{text}`, which is no number",
                        column.name
                    )
                })?;
                attributes.insert(column.name.clone(), value);
            }
        }
        Ok(attributes)
    }

    fn id(&self, column: usize) -> Result<u64, String> {
        id::parse_id(self.text_of(column)?.trim())
            .map_err(|reason| format!("column `{}`: {reason}", self.header[column].name))
    }

    fn float(&self, column: usize) -> Result<f64, String> {
        let text = self.text_of(column)?;
        finite(text).ok_or_else(|| {
            format!(
                "column `{}` holds `{text}`, which is no finite number",
                self.header[column].name
            )
        })
    }

    fn text_of(&self, column: usize) -> Result<&str, String> {
        str::from_utf8(self.record.get(column).unwrap_or_default())
            .map_err(|_| format!("column `{}` is not UTF-8", self.header[column].name))
    }
}

impl<R: BufRead> Reader<R> {
    /// The line on which the record began. Not the one that the csv reader says:
    /// that takes blank lines, and the second half of CRLF, for part of the record
    /// behind them.
    pub(super) fn line(&self) -> u64 {
        let last = self.records.get_ref().line;
        let quoted = self.record.as_slice().iter().filter(|byte| **byte == b'\n');
        last.saturating_sub(quoted.count() as u64)
    }

    /// The fields as read, with the quotes gone.
    pub(super) fn text(&self) -> Vec<u8> {
        let separator: &[u8] = if self.format == Format::Csv {
            b","
        } else {
            b"\t"
        };
        self.record.iter().collect::<Vec<_>>().join(separator)
    }
}

/// Hands its input on in pieces that end with a line, so that the line of the piece
/// handed on last is the one where its reader, which asks for a piece only when it
/// needs one, stands.
struct LineByLine<R> {
    input: R,
    line: u64,
    at_line_start: bool,
}

impl<R> LineByLine<R> {
    fn new(input: R) -> Self {
        LineByLine {
            input,
            line: 0,
            at_line_start: true,
        }
    }
}

impl<R: BufRead> Read for LineByLine<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.input.fill_buf()?;
        piece = &piece[..piece.len().min(buffer.len())];
        if let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            piece = &piece[..=end];
        }
        let length = piece.len();
        // At the end too: a quoted field that is never closed ends behind the last
        // line, with the newline of that line in it.
        self.line += u64::from(self.at_line_start);
        self.at_line_start = piece.ends_with(b"\n");
        buffer[..length].copy_from_slice(piece);
        self.input.consume(length);
        Ok(length)
    }
}

impl Column {
    fn parse(field: &[u8], format: Format) -> Result<Self, String> {
        let text = str::from_utf8(field)
            .map_err(|_| format!("`{}` is not UTF-8", field.escape_ascii()))?
            .trim();
        if format != Format::Recbole {
            return Ok(Column {
                name: text.to_owned(),
                kind: ColumnType::Token,
            });
        }
        let (name, kind) = text
            .rsplit_once(':')
            .ok_or_else(|| format!("`{text}` is not of the form name:type"))?;
        let kind = match kind {
            "token" => ColumnType::Token,
            "token_seq" => ColumnType::TokenSequence,
            "float" => ColumnType::Float,
            "float_seq" => ColumnType::FloatSequence,
            unknown => {
                return Err(format!(
                    "`{text}` has the type `{unknown}`; types are token, token_seq, float, float_seq"
                ));
            }
        };
        Ok(Column {
            name: name.to_owned(),
            kind,
        })
    }
}

impl ColumnType {
    /// The value of a field of this type; `None` if it is to be a number and is
    /// none. An empty number is null.
    fn value(self, text: &str) -> Option<Value> {
        match self {
            ColumnType::Token => Some(Value::from(text)),
            ColumnType::TokenSequence => Some(text.split_whitespace().map(Value::from).collect()),
            ColumnType::Float if text.trim().is_empty() => Some(Value::Null),
            ColumnType::Float => finite(text).map(Value::from),
            ColumnType::FloatSequence => text
                .split_whitespace()
                .map(|number| finite(number).map(Value::from))
                .collect(),
        }
    }
}

impl Row {
    fn of(header: &[Column], format: Format, subject: &Subject) -> Result<Self, String> {
        let columns = match subject {
            Subject::Profiles(user) => {
                let user = required(header, user.as_deref(), "user_id")?;
                return Ok(Row::Profile { user });
            }
            Subject::Events(columns) => columns,
        };
        let usual_weight = match format {
            Format::Recbole => "rating",
            _ => "weight",
        };
        let kind = match &columns.fixed_kind {
            Some(kind) => Kind::Fixed(kind.clone()),
            None => Kind::Column(
                required(header, columns.kind.as_deref(), "kind")
                    .map_err(|reason| format!("{reason}, or give every signal one kind"))?,
            ),
        };
        Ok(Row::Signal {
            user: required(header, columns.user.as_deref(), "user_id")?,
            item: required(header, columns.item.as_deref(), "item_id")?,
            weight: match &columns.weight {
                Some(name) => Some(required(header, Some(name), usual_weight)?),
                None => find(header, usual_weight),
            },
            kind,
        })
    }
}

fn required(header: &[Column], named: Option<&str>, usual: &str) -> Result<usize, String> {
    let name = named.unwrap_or(usual);
    find(header, name).ok_or_else(|| {
        let existing: Vec<&str> = header.iter().map(|column| column.name.as_str()).collect();
        format!(
            "there is no column `{name}` among `{}`; name another",
            existing.join("`, `")
        )
    })
}

fn find(header: &[Column], name: &str) -> Option<usize> {
    header.iter().position(|column| column.name == name)
}

fn finite(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

fn io_error(error: csv::Error) -> ReadError {
    ReadError::Io(error.into())
}
