//! Cohorts: predicates over a user's profile, in the Common Expression Language.
//! The crate `cel` is named nowhere else.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::{Context, Program, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Error, Result};

/// A user's attributes: names with JSON values. In a cohort's predicate each name
/// is a variable; whole numbers are integers there, all others floating point.
pub type Profile = serde_json::Map<String, Json>;

/// The longest predicate, in bytes.
pub const MAX_PREDICATE_BYTES: usize = 4096;

/// The largest profile, in bytes of JSON.
pub const MAX_PROFILE_BYTES: usize = 65_536;

/// A cohort as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredCohort {
    pub(super) predicate: String,
    /// Whether the membership of every user has been worked out. A crash while
    /// that goes on leaves `false`, and the next opening does it again.
    pub(super) evaluated: bool,
}

/// A predicate that compiles.
#[derive(Debug)]
pub(super) struct Predicate {
    source: String,
    program: Program,
}

impl Predicate {
    pub(super) fn compile(cohort: &str, source: &str) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidPredicate {
            cohort: cohort.to_owned(),
            reason,
        };
        if source.len() > MAX_PREDICATE_BYTES {
            return Err(invalid(format!(
                "length {} exceeds the maximum of {MAX_PREDICATE_BYTES} bytes",
                source.len()
            )));
        }
        // The parser is generated code that panics on some inputs it can't read.
        let program = catch_unwind(|| Program::compile(source))
            .map_err(|_| invalid("it can't be parsed".to_owned()))?
            .map_err(|error| invalid(first_line(&error.to_string())))?;
        Ok(Predicate {
            source: source.to_owned(),
            program,
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the profile meets the predicate. One that can't be evaluated for
    /// this profile, because an attribute is missing or has another type, or whose
    /// value is not a boolean, is not met.
    pub(super) fn is_met(&self, profile: &Profile) -> bool {
        let evaluate = || {
            let mut context = Context::default();
            for (name, value) in profile {
                context.add_variable_from_value(name.as_str(), to_cel(value));
            }
            self.program.execute(&context)
        };
        // Nothing is shared with the closure that a panic could leave half done.
        let outcome = catch_unwind(AssertUnwindSafe(evaluate));
        matches!(outcome, Ok(Ok(Value::Bool(true))))
    }
}

fn to_cel(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::Int(integer),
            (None, Some(integer)) => Value::UInt(integer),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(text.clone().into()),
        Json::Array(values) => Value::List(values.iter().map(to_cel).collect::<Vec<_>>().into()),
        Json::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(name, value)| (name.clone(), to_cel(value)))
                .collect::<HashMap<String, Value>>()
                .into(),
        ),
    }
}

/// The first of the parser's complaints: after it come the predicate itself, which
/// may be long, and what the first one leads to.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The stored form of a profile.
pub(super) fn encode_profile(profile: &Profile) -> Result<Vec<u8>> {
    let invalid = |reason: String| Error::InvalidArgument {
        what: "profile",
        reason,
    };
    let bytes = serde_json::to_vec(profile).map_err(|error| invalid(error.to_string()))?;
    if bytes.len() > MAX_PROFILE_BYTES {
        return Err(invalid(format!(
            "length {} exceeds the maximum of {MAX_PROFILE_BYTES} bytes",
            bytes.len()
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_met(predicate: &str, profile: &Json) -> bool {
        let Json::Object(profile) = profile else {
            panic!("a profile is an object")
        };
        Predicate::compile("test", predicate)
            .unwrap()
            .is_met(profile)
    }

    #[test]
    fn predicates_see_attributes_as_variables() {
        let profile = serde_json::json!({
            "age": "24", "score": 0.5, "visits": 7, "tags": ["a", "b"], "home": {"city": "Oslo"}
        });
        assert!(is_met("int(age) < 25", &profile));
        assert!(is_met("score > 0.25 && visits == 7", &profile));
        assert!(is_met("'b' in tags && home.city == 'Oslo'", &profile));
        assert!(!is_met("int(age) < 24", &profile));
    }

    #[test]
    fn a_predicate_that_cant_be_evaluated_is_not_met() {
        let profile = serde_json::json!({"age": "old"});
        assert!(!is_met("int(age) < 25", &profile));
        assert!(!is_met("occupation == 'student'", &profile));
        assert!(!is_met("1 + 1", &profile));
    }

    #[test]
    fn refuses_what_does_not_compile_or_is_too_long() {
        for predicate in ["", "age <", "int(age", "\u{0}", "'", &"1+".repeat(4096)] {
            let error = Predicate::compile("young", predicate).unwrap_err();
            assert!(
                matches!(error, Error::InvalidPredicate { .. }),
                "{predicate}"
            );
            assert!(!error.to_string().contains('\n'));
        }
    }
}
