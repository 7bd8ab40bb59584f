//! Ids: whole numbers of 64 bits, as JSON numbers or as decimal text, exactly.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// An id in a JSON line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(pub(super) u64);

/// The id that a text stands for: decimal digits and nothing else, up to 2^64 - 1. An
/// error says what the text is not.
pub fn parse_id(text: &str) -> Result<u64, String> {
    // The standard parser takes a plus sign too.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| refusal(&format_args!("`{text}`")))
}

fn refusal(found: &dyn fmt::Display) -> String {
    format!("an id is a whole number from 0 to 18446744073709551615, not {found}")
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id, which is a whole number or decimal text")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Id, E> {
        Ok(Id(id))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
        Err(E::custom(refusal(&number)))
    }

    // Whole numbers too large for 64 bits come here as well.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Id, E> {
        // With its point or exponent, which is what is wrong with it.
        Err(E::custom(refusal(&format_args!("{number:?}"))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
        parse_id(text).map(Id).map_err(E::custom)
    }
}
