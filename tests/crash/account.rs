//! What must be in a store after what a killed process said of one user.

use tidegate::{MembershipStatus, Scope, TidalDb, Transition};

use super::workload::Said;
use crate::support::{cohort, community, views};

/// One user, as the store had them when it was last looked at, and what was said
/// since.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    user_id: u64,
    /// Every transition, with its instant, up to the last look.
    history: Vec<Transition>,
    /// Transitions acknowledged since.
    done: Vec<MembershipStatus>,
    /// The transition that was under way at the end.
    under_way: Option<MembershipStatus>,
    /// Signals in the base ledger, and those of them in every other scope, at the
    /// last look.
    base: u64,
    open: u64,
    /// The signals announced since, in order: whether each one is gated.
    signals: Vec<bool>,
    /// How many of those were flushed.
    flushed: usize,
}

impl Account {
    pub(super) fn new(user_id: u64) -> Self {
        Account {
            user_id,
            ..Account::default()
        }
    }

    pub(super) fn hear(&mut self, said: Said) {
        match said {
            Said::Opened => {}
            Said::Begins { to, .. } => self.under_way = Some(to),
            Said::Done { to, .. } => {
                self.under_way = None;
                self.done.push(to);
            }
            Said::Signals { count, gated, .. } => {
                self.signals.extend((0..count).map(|_| gated));
            }
            Said::Flushed { .. } => self.flushed = self.signals.len(),
        }
    }

    /// Compares the store with what was said, and starts a new account.
    pub(super) fn check(&mut self, db: &TidalDb) {
        self.check_history(db);
        self.check_aggregates(db);
    }

    fn check_history(&mut self, db: &TidalDb) {
        let found = db.community_layer_history(self.user_id).unwrap();
        let (known, new) = found.split_at(self.history.len());
        assert_eq!(known, self.history);
        let mut expected = std::mem::take(&mut self.done);
        if new.len() > expected.len() {
            expected.extend(self.under_way);
        }
        self.under_way = None;
        let new: Vec<MembershipStatus> = new.iter().map(|transition| transition.to).collect();
        assert_eq!(new, expected);
        assert!(found.is_sorted_by_key(|transition| transition.at_ns));

        let status = db.community_layer_status(self.user_id).unwrap();
        let last = found.last().map(|transition| transition.to);
        assert_eq!(status.status, last.unwrap_or(MembershipStatus::Active));
        let last_leave = found
            .iter()
            .rfind(|transition| transition.to == MembershipStatus::Left);
        assert_eq!(status.left_at_ns, last_leave.map(|leave| leave.at_ns));
        self.history = found;
    }

    /// One thread sent the signals, so those that are there are the first of them.
    fn check_aggregates(&mut self, db: &TidalDb) {
        let item_id = self.user_id;
        let base = views(db, &Scope::Base, item_id);
        let there = usize::try_from(base - self.base).unwrap();
        assert!(
            (self.flushed..=self.signals.len()).contains(&there),
            "{there} of {} signals, of which {} were flushed",
            self.signals.len(),
            self.flushed
        );
        let let_through = self.signals[..there].iter().filter(|gated| !**gated);
        let open = self.open + let_through.count() as u64;
        for scope in [cohort("all"), community("film"), community("books")] {
            assert_eq!(views(db, &scope, item_id), open, "{scope}");
        }
        (self.base, self.open) = (base, open);
        self.signals.clear();
        self.flushed = 0;
    }

    /// The signals were lost with sled.
    pub(super) fn forget_signals(&mut self) {
        (self.base, self.open) = (0, 0);
    }
}
