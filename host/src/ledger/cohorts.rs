//! Cohorts: predicates over a user's profile, in the Common Expression Language.
//! The crate `cel` is named nowhere else.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr};
use cel::{Context, IdedExpr, Program, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Error, Result};

/// A user's attributes: names with JSON values. In a cohort's predicate each name
/// is a variable; whole numbers are integers there, all others floating point.
pub type Profile = serde_json::Map<String, Json>;

/// The longest predicate, in bytes. Evaluating one takes stack for each operator in a
/// row, and this many fit into the stack of any thread.
pub const MAX_PREDICATE_BYTES: usize = 1024;

/// The largest profile, in bytes of JSON. Small enough that sled keeps it in its data
/// file: larger values go to files of their own, which it does not sync.
pub const MAX_PROFILE_BYTES: usize = 8192;

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
pub(crate) struct Predicate {
    source: String,
    program: Program,
}

impl Predicate {
    pub(crate) fn compile(cohort: &str, source: &str) -> Result<Self> {
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
        if has_nested_loops(program.expression(), false) {
            return Err(invalid(
                "it has a loop within a loop, such as `all` within `exists`".to_owned(),
            ));
        }
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
    pub(crate) fn is_met(&self, profile: &Profile) -> bool {
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

/// Whether there is a loop inside a loop, whose cost would be the product of both
/// lengths, and so on with each further one.
fn has_nested_loops(expression: &IdedExpr, in_loop: bool) -> bool {
    let nested = |inner: &IdedExpr| has_nested_loops(inner, in_loop);
    let nested_entry = |entry: &IdedEntryExpr| match &entry.expr {
        EntryExpr::StructField(field) => nested(&field.value),
        EntryExpr::MapEntry(entry) => nested(&entry.key) || nested(&entry.value),
    };
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => false,
        Expr::Call(call) => {
            call.target.as_deref().is_some_and(nested) || call.args.iter().any(nested)
        }
        Expr::List(list) => list.elements.iter().any(nested),
        Expr::Map(map) => map.entries.iter().any(nested_entry),
        Expr::Struct(fields) => fields.entries.iter().any(nested_entry),
        Expr::Select(select) => nested(&select.operand),
        Expr::Comprehension(comprehension) => {
            in_loop
                || [
                    &comprehension.iter_range,
                    &comprehension.accu_init,
                    &comprehension.loop_cond,
                    &comprehension.loop_step,
                    &comprehension.result,
                ]
                .into_iter()
                .any(|part| has_nested_loops(part, true))
        }
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
    // JSON may be nested deeper than it can be read again.
    serde_json::from_slice::<Profile>(&bytes).map_err(|error| invalid(error.to_string()))?;
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
        let nested = "[1, 2].all(a, [1, 2].exists(b, a == b))";
        for predicate in [
            "",
            "age <",
            "int(age",
            "\u{0}",
            "'",
            &"1+".repeat(4096),
            nested,
        ] {
            let error = Predicate::compile("young", predicate).unwrap_err();
            assert!(
                matches!(error, Error::InvalidPredicate { .. }),
                "{predicate}"
            );
            assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn the_longest_chain_fits_into_a_small_stack() {
        let chain = format!("{}1 == 512", "1+".repeat((MAX_PREDICATE_BYTES - 8) / 2));
        assert!(chain.len() > MAX_PREDICATE_BYTES - 8);
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let evaluated = thread
            .spawn(move || is_met(&chain, &serde_json::json!({})))
            .unwrap()
            .join();
        assert!(!evaluated.unwrap());
    }
}
