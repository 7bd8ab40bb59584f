//! A session with a community layer: a user signals, leaves, and comes back.

use tidegate::community::community_layer::{self as layer, EngagementSignal, Error};
use tidegate::community::types::{CommunityMembership, MembershipStatus};

wit_bindgen::generate!({ path: "../../../wit", world: "caller" });

struct Session;

export!(Session);

impl Guest for Session {
    fn run(args: Vec<String>) -> Result<String, String> {
        let [user] = args.as_slice() else {
            return Err(format!("1 user id expected, {} found", args.len()));
        };
        session(user_id(user)?)
    }
}

fn session(user: u64) -> Result<String, String> {
    let mut lines = Vec::new();
    lines.push(signal(user)?);
    lines.push(status(&layer::status(user).map_err(text)?));

    let left = layer::leave(user).map_err(text)?;
    let instant = left.left_at_ns.ok_or("the leave has no instant")?;
    lines.push(format!("leave: {}", word(left.status)));
    lines.push(signal(user)?);

    let membership = layer::status(user).map_err(text)?;
    if membership.left_at_ns != Some(instant) {
        return Err("status has another instant than the leave".to_owned());
    }
    lines.push(status(&membership));

    let back = layer::rejoin(user).map_err(text)?;
    if back.left_at_ns != Some(instant) {
        return Err("rejoin has another instant than the leave".to_owned());
    }
    lines.push(format!("rejoin: {}", word(back.status)));
    lines.push(signal(user)?);

    let history = layer::history(user).map_err(text)?;
    let last_leave = history
        .iter()
        .rfind(|entry| entry.to == MembershipStatus::Left);
    if last_leave.map(|entry| entry.at_ns) != Some(instant) {
        return Err("history has another instant than the leave".to_owned());
    }
    let steps: Vec<_> = history.iter().map(|entry| word(entry.to)).collect();
    lines.push(format!("history: {}", steps.join(", ")));

    Ok(lines.join("\n"))
}

fn signal(user: u64) -> Result<String, String> {
    let like = EngagementSignal {
        item_id: 7,
        kind: "like".to_owned(),
        weight: 1.5,
    };
    let receipt = layer::signal(user, &like).map_err(text)?;
    let gated = if receipt.gated { "yes" } else { "no" };
    Ok(format!(
        "signal: cohorts {}, communities {}, gated {gated}",
        receipt.cohorts, receipt.communities
    ))
}

fn status(membership: &CommunityMembership) -> String {
    match (membership.status, membership.left_at_ns) {
        (MembershipStatus::Active, None) => "status: active, never left".to_owned(),
        (MembershipStatus::Active, Some(_)) => "status: active, has left before".to_owned(),
        (MembershipStatus::Left, _) => "status: left".to_owned(),
    }
}

fn word(status: MembershipStatus) -> &'static str {
    match status {
        MembershipStatus::Active => "active",
        MembershipStatus::Left => "left",
    }
}

fn text(error: Error) -> String {
    match error {
        Error::NotDurable(text) => format!("not-durable: {text}"),
        Error::MalformedRecord(text) => format!("malformed-record: {text}"),
        Error::InvalidSignal(text) => format!("invalid-signal: {text}"),
        Error::AccessDenied(text) => format!("access-denied: {text}"),
        Error::Storage(text) => format!("storage: {text}"),
        Error::Component(text) => format!("component: {text}"),
    }
}

/// Decimal digits and nothing else; the standard parser takes a plus sign too.
fn user_id(text: &str) -> Result<u64, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(id) if digits => Ok(id),
        _ => Err(format!("not a user id: \"{text}\"")),
    }
}
