//! The fan-out: what a signal is added to, and the two places where the gate's answer
//! decides.

use super::{Receipt, Signal, TidalDb};
use crate::error::Result;
use crate::ledger::Position;
use crate::ledger::audience::Audience;
use crate::ledger::pending::{Contribution, Recorder};
use crate::membership::FanOut;

impl TidalDb {
    /// Adds one signal to the base ledger and, as far as the gate lets it through,
    /// to the aggregates of the user's cohorts and communities.
    ///
    /// A gated signal is an accepted signal. It is durable with the next flush; a
    /// crash before that loses whole signals, never a part of one.
    ///
    /// [`Error::InvalidSignal`](crate::Error::InvalidSignal) if the kind is not 1 to
    /// 64 bytes long, or the weight is not finite or is above 10^9 in magnitude; the
    /// signal then has no effect.
    pub fn signal_with_context(&self, user_id: u64, signal: &Signal<'_>) -> Result<Receipt> {
        self.forward(user_id, signal, None)
    }

    /// [`signal_with_context`](Self::signal_with_context) for a signal that was read
    /// from an input: `position`, which counts the signal's own record too, is stored
    /// in the batch that stores the signal, so that after a crash the reader can go on
    /// at [`position`](Self::position) and count every signal exactly once.
    pub fn signal_at(
        &self,
        position: &Position<'_>,
        user_id: u64,
        signal: &Signal<'_>,
    ) -> Result<Receipt> {
        self.forward(user_id, signal, Some(position))
    }

    /// What a signal of this user would be added to at this moment, asked of the gate as
    /// a signal asks it. By the time the caller looks at the answer the user may have
    /// left: only what [`signal_with_context`](Self::signal_with_context) adds is exact.
    ///
    /// ```
    /// use tidegate::{FanOut, TidalDb};
    ///
    /// let db = TidalDb::ephemeral()?;
    /// assert_eq!(db.fan_out(42), FanOut::ALL);
    /// db.leave_community_layer(42)?;
    /// assert_eq!(db.fan_out(42), FanOut::NONE);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn fan_out(&self, user_id: u64) -> FanOut {
        self.gate.pass(user_id, |fan_out| fan_out)
    }

    fn forward(
        &self,
        user_id: u64,
        signal: &Signal<'_>,
        position: Option<&Position<'_>>,
    ) -> Result<Receipt> {
        let contribution = Contribution::try_from(signal)?;
        let (receipt, at_ns) = self.ledger.with_audience(user_id, |audience| {
            self.gate.pass(user_id, |fan_out| {
                // Read while the gate can't be shut for this user: a leave reads the
                // clock after it shut the gate, so its boundary is above this.
                let at_ns = self.clock.tick_ns();
                let receipt = self.ledger.record(&contribution, |recorder| {
                    if let Some(position) = position {
                        recorder.advance(position.input, self.ledger.stamp(position));
                    }
                    add(recorder, fan_out, audience)
                });
                (receipt, at_ns)
            })
        })?;
        tracing::trace!(
            user_id,
            at_ns,
            cohorts = receipt.cohorts,
            communities = receipt.communities,
            "forwarded"
        );
        Ok(receipt)
    }
}

fn add(recorder: &mut Recorder<'_>, fan_out: FanOut, audience: &Audience) -> Receipt {
    recorder.add_to_base();
    let cohorts = try_cohort_attribution(recorder, fan_out, audience);
    let communities = try_community_forwarding(recorder, fan_out, audience);
    Receipt {
        cohorts: cohorts.unwrap_or(0),
        communities: communities.unwrap_or(0),
        gated: cohorts.is_none() || communities.is_none(),
    }
}

/// Adds the signal to the aggregate of each of the user's cohorts and returns
/// their number; `None` if the gate holds it back.
fn try_cohort_attribution(
    recorder: &mut Recorder<'_>,
    fan_out: FanOut,
    audience: &Audience,
) -> Option<u32> {
    if !fan_out.cohort_attribution {
        recorder.totals().gated_cohort_attribution += 1;
        return None;
    }
    let added = recorder.add_to_each(&audience.cohorts);
    recorder.totals().cohort_contributions += u64::from(added);
    Some(added)
}

/// Adds the signal to the aggregate of each community that the user joined and
/// returns their number; `None` if the gate holds it back.
fn try_community_forwarding(
    recorder: &mut Recorder<'_>,
    fan_out: FanOut,
    audience: &Audience,
) -> Option<u32> {
    if !fan_out.community_forwarding {
        recorder.totals().gated_community_forwarding += 1;
        return None;
    }
    let added = recorder.add_to_each(&audience.communities);
    recorder.totals().community_contributions += u64::from(added);
    Some(added)
}
