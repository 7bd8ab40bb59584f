//! The rules exchanged for others while signals flow.
//!
//! What the new rules make of every record is worked out beside the gate, as an opening
//! would. Only then the gate changes, in two steps: first everybody loses what the new
//! policy takes away, then everybody gets what it gives. So while the two policies meet,
//! nothing is let through that one of them holds back.

use std::path::Path;

use super::opening::read_rules;
use super::{TidalDb, reconcile};
use crate::error::Result;

impl TidalDb {
    /// Exchanges the component of rules for the one in `file`, and returns how many users
    /// are shut because the new one can't read what is stored, or because it was lost
    /// before: `verify` names them. Signals go on meanwhile; leaves and rejoins wait.
    ///
    /// When it returns, every signal is subject to the new policy. It lasts as long as
    /// this handle: what the store is opened with the next time is for
    /// [`Config`](crate::Config) to say. A user whose latest transition failed stays shut.
    ///
    /// After an error nothing has changed. [`Error::ComponentRefused`] if the component
    /// does not fit, [`Error::ComponentFailed`] if it fails over what is stored.
    ///
    /// The cost follows the number of users with a record, and a second gate is in memory
    /// meanwhile.
    ///
    /// [`Error::ComponentRefused`]: crate::Error::ComponentRefused
    /// [`Error::ComponentFailed`]: crate::Error::ComponentFailed
    pub fn swap_component(&self, file: impl AsRef<Path>) -> Result<u64> {
        let rules = read_rules(file.as_ref(), &self.path)?;
        self.turns.paused(|| {
            self.commit.apply()?;
            let content = self.commit.read_journal()?;
            let next = reconcile::reread(content.as_ref(), &self.storage, &rules, self.loss)?;
            self.gate.narrow_to(&next);
            *self.rules.write() = rules;
            self.gate.take_over(&next);
            let malformed = next.census().malformed;
            if malformed > 0 {
                tracing::warn!(
                    "{malformed} membership records can't be read by the new rules, or were lost before; the gate is shut for their users until a leave or a rejoin writes new ones, and `verify` names them"
                );
            }
            Ok(malformed)
        })
    }
}
