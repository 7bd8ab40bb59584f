//! Every stored record read again and compared with the gate, every history with the
//! journal.

use std::collections::BTreeSet;

use super::opening::user_of_record;
use super::{TidalDb, history};
use crate::error::{Error, Result};
use crate::gate::Standing;
use crate::membership::{CommunityMembership, MembershipStatus};
use crate::storage::keys::{EntityId, Tag, encode_key, entity_of};
use crate::storage::{Batch, Partition};

/// What [`TidalDb::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of stored records, malformed ones included.
    pub records: u64,
    /// How many of them say that their user has left.
    pub left: u64,
    /// The users whose record can't be read, in order.
    pub malformed: Vec<u64>,
    /// Malformed records whose key is too short to name a user.
    pub unattributed: u64,
    /// Transitions that neither the journal nor the store had when it was opened, so
    /// that the gate is shut for every user without a later one.
    pub lost: u64,
    /// Transitions that users' histories lacked and the journal had; they are written
    /// again, so a second call finds none.
    pub restored: u64,
    /// The users for whom the gate is not as their record says, or who have no
    /// record where the gate knows of one, in order. There are none unless storage
    /// was changed behind the store's back, transitions were lost, or a transition
    /// failed and was not repeated.
    pub disagreeing: Vec<u64>,
}

impl Verification {
    /// Whether every record can be read and agrees with the gate, and nothing was lost or
    /// had to be written again.
    pub fn is_clean(&self) -> bool {
        self.malformed.is_empty()
            && self.disagreeing.is_empty()
            && self.unattributed == 0
            && self.lost == 0
            && self.restored == 0
    }
}

impl TidalDb {
    /// Reads every stored record and compares it with the gate, and every history and
    /// compares it with the journal; what a history lacks is written again. No leave or
    /// rejoin happens meanwhile; signals go on.
    pub fn verify(&self) -> Result<Verification> {
        self.turns.paused(|| {
            self.commit.apply()?;
            let mut found = Verification {
                lost: self.loss.transitions,
                ..Verification::default()
            };
            let mut malformed = BTreeSet::new();
            let mut disagreeing: BTreeSet<u64> = self.gate.users().into_iter().collect();
            self.storage
                .partition(Partition::Memberships)
                .scan(b"", |key, record| {
                    found.records += 1;
                    match self.read_record(key, record)? {
                        Some(membership) => {
                            let left = membership.status == MembershipStatus::Left;
                            found.left += u64::from(left);
                            if self.agrees(&membership)? {
                                disagreeing.remove(&membership.user_id);
                            } else {
                                disagreeing.insert(membership.user_id);
                            }
                        }
                        None => match entity_of(key) {
                            Some(EntityId(user_id)) => {
                                malformed.insert(user_id);
                            }
                            None => found.unattributed += 1,
                        },
                    }
                    Ok(())
                })?;
            if let Some(content) = self.commit.read_journal()? {
                found.restored = history::restore(&self.storage, &content)?;
            }
            // A user with a malformed record beside a good one is shut, and named once.
            found.disagreeing = disagreeing.difference(&malformed).copied().collect();
            found.malformed = malformed.into_iter().collect();
            Ok(found)
        })
    }

    /// Gives up the transitions that were lost and the records whose key names no user, if
    /// any, and returns how many these are. From the next opening on the gate goes by what
    /// is known: users of whom no transition is left count as users who never left. It is
    /// for whoever runs the store to decide that this is so, or that it does not matter.
    pub fn accept_loss(&self) -> Result<u64> {
        self.turns.paused(|| {
            let mut batch = Batch::default();
            self.storage
                .partition(Partition::Memberships)
                .scan(b"", |key, _| {
                    if entity_of(key).is_none() {
                        batch.delete(Partition::Memberships, key.to_vec());
                    }
                    Ok(())
                })?;
            let given_up = self.loss.transitions + batch.writes().len() as u64;
            if self.loss.transitions > 0 {
                let key = encode_key(EntityId(0), Tag::AcceptedLoss, b"");
                batch.put(Partition::System, key, self.loss.encode());
            }
            if given_up > 0 {
                self.storage.apply(&batch)?;
                self.storage.flush()?;
            }
            Ok(given_up)
        })
    }

    /// The membership that a stored record stands for; `None` if it is malformed.
    fn read_record(&self, key: &[u8], record: &[u8]) -> Result<Option<CommunityMembership>> {
        let Some(user_id) = user_of_record(key) else {
            return Ok(None);
        };
        self.rules.read().read(user_id, record)
    }

    fn agrees(&self, membership: &CommunityMembership) -> Result<bool> {
        let fan_out = self.rules.read().fan_out(membership)?;
        Ok(self.gate.known(membership.user_id).is_some_and(|known| {
            known.standing == Standing::Settled
                && known.membership == *membership
                && known.fan_out == fan_out
        }))
    }

    /// The error that says what is wrong with a user's record.
    pub(super) fn why_malformed(&self, user_id: u64) -> Error {
        let key = encode_key(EntityId(user_id), Tag::CommunityLeave, b"");
        let read = || {
            let record = self.storage.partition(Partition::Memberships).get(&key)?;
            self.rules.read().status(user_id, record.as_deref())
        };
        match read() {
            Ok(_) => Error::MalformedRecord {
                user_id,
                reason: "a key of this user among the records does not parse, the component contradicted the journal, or the record may be of a transition that was lost".to_owned(),
            },
            Err(error) => error,
        }
    }
}
