//! JSON lines: an object a line, of one of six types.

use std::borrow::Cow;
use std::io::BufRead;

use serde::{Deserialize, Deserializer};
use serde_json::Number;

use super::id::Id;
use super::{BadLine, Event, ReadError, Subject};
use crate::ledger::Profile;

pub(super) struct Reader<R> {
    input: R,
    default_type: &'static str,
    buffer: Vec<u8>,
    line: u64,
}

/// A line as it stands. Fields that no type has are passed over.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    event_type: Option<Text<'a>>,
    user_id: Option<Id>,
    item_id: Option<Id>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(default, deserialize_with = "weight")]
    weight: Option<f64>,
    #[serde(borrow)]
    community: Option<Text<'a>>,
    attributes: Option<Profile>,
}

/// Text that is borrowed from the line where it holds no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A weight that is there is a number, and not null: that is what some programs write
/// for one that is not finite.
fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Number::deserialize(deserializer).map(|number| number.as_f64())
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, subject: &Subject) -> Self {
        Reader {
            input,
            default_type: match subject {
                Subject::Events(_) => "signal",
                Subject::Profiles(_) => "profile",
            },
            buffer: Vec::new(),
            line: 0,
        }
    }

    pub(super) fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        loop {
            self.buffer.clear();
            if self.input.read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let event = parse(self.buffer.trim_ascii(), self.default_type);
        event.map(Some).map_err(|reason| {
            ReadError::Line(BadLine {
                line: self.line,
                reason,
                text: self.text(),
            })
        })
    }
}

impl<R> Reader<R> {
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn text(&self) -> Vec<u8> {
        self.buffer.trim_ascii().to_vec()
    }
}

fn parse<'a>(line: &'a [u8], default_type: &str) -> Result<Event<'a>, String> {
    let text = str::from_utf8(line)
        .map_err(|error| format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1))?;
    // The derived reader would take an array of the fields too.
    if !text.starts_with('{') {
        return Err("it is not a JSON object".to_owned());
    }
    let line: Line<'a> = serde_json::from_str(text).map_err(|error| without_line(&error))?;
    let event_type = line
        .event_type
        .as_ref()
        .map_or(default_type, |Text(text)| text);
    let user_id = line.user_id.ok_or("`user_id` is missing")?.0;
    match event_type {
        "signal" => Ok(Event::Signal {
            user_id,
            item_id: line.item_id.ok_or("`item_id` is missing")?.0,
            kind: line.kind.ok_or("`kind` is missing")?.0,
            weight: line.weight.unwrap_or(1.0),
        }),
        "leave" => Ok(Event::Leave { user_id }),
        "rejoin" => Ok(Event::Rejoin { user_id }),
        "join" => Ok(Event::Join {
            user_id,
            community: line.community.ok_or("`community` is missing")?.0,
        }),
        "quit" => Ok(Event::Quit {
            user_id,
            community: line.community.ok_or("`community` is missing")?.0,
        }),
        "profile" => Ok(Event::Profile {
            user_id,
            attributes: line.attributes.ok_or("`attributes` is missing")?,
        }),
        unknown => Err(format!(
            "`type` is `{unknown}`; it is one of signal, leave, rejoin, join, quit, profile"
        )),
    }
}

/// The message of an error, without the line number, which is always 1 here.
fn without_line(error: &serde_json::Error) -> String {
    error.to_string().replacen("line 1 column", "column", 1)
}
