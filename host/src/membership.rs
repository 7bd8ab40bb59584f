//! The words of the domain: a user's standing, what it lets through, and the
//! changes it went through. Plain data; what they mean is decided by the rules.

use std::fmt;

/// Where a user stands in the community layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipStatus {
    /// The user takes part. Also the standing of a user nobody has heard of.
    Active,
    /// The user has left and has not come back.
    Left,
}

impl MembershipStatus {
    /// The name that the contract gives it: `active` or `left`.
    pub const fn name(self) -> &'static str {
        match self {
            MembershipStatus::Active => "active",
            MembershipStatus::Left => "left",
        }
    }
}

impl fmt::Display for MembershipStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A user's standing, and when they last left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunityMembership {
    /// Whose standing it is.
    pub user_id: u64,
    /// Where the user stands.
    pub status: MembershipStatus,
    /// The boundary of the latest leave, in nanoseconds since the Unix epoch:
    /// every contribution forwarded before it was stamped below this instant.
    /// Never `Some(0)`. Kept when the user rejoins; `None` if they never left.
    pub left_at_ns: Option<u64>,
}

impl CommunityMembership {
    /// The standing of a user without a record.
    pub const fn never_left(user_id: u64) -> Self {
        CommunityMembership {
            user_id,
            status: MembershipStatus::Active,
            left_at_ns: None,
        }
    }
}

/// As the contract spells it: `{user-id: 42, status: left, left-at-ns: some(5)}`.
impl fmt::Display for CommunityMembership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user_id, status) = (self.user_id, self.status);
        write!(f, "{{user-id: {user_id}, status: {status}, left-at-ns: ")?;
        match self.left_at_ns {
            Some(left_at_ns) => write!(f, "some({left_at_ns})}}"),
            None => f.write_str("none}"),
        }
    }
}

/// The shared aggregates that a user's signals may be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// The aggregates of the cohorts that the user belongs to.
    pub cohort_attribution: bool,
    /// The aggregates of the communities that the user joined.
    pub community_forwarding: bool,
}

impl FanOut {
    /// Everything: what a user without a record may do.
    pub const ALL: FanOut = FanOut {
        cohort_attribution: true,
        community_forwarding: true,
    };
    /// Nothing: the gate is shut.
    pub const NONE: FanOut = FanOut {
        cohort_attribution: false,
        community_forwarding: false,
    };
}

/// One acknowledged leave or rejoin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The standing that it led to.
    pub to: MembershipStatus,
    /// When it took effect, in nanoseconds since the Unix epoch on the host's
    /// strictly increasing clock. For a leave, the `left_at_ns` that it set.
    pub at_ns: u64,
}
