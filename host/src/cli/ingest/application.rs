//! Events applied in their order, each exactly once, also when a run that was
//! interrupted is resumed.
//!
//! The store keeps how far an input was read, in the batch that keeps the signals read
//! up to there. An event of another type takes effect at once. So that resuming finds
//! signals and other events in their order, the signals before it are flushed first;
//! what is read again on resuming is then a run of such events followed by signals
//! that did not last. Joins, quits and profiles may be applied again, they lead to the
//! same. A transition is looked up in the history first.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, Result, anyhow};
use indicatif::ProgressBar;
use serde::Serialize;
use tidegate::events::{BadLine, Event, EventReader, ReadError, Subject};
use tidegate::{Error, MembershipStatus, Position, Signal, TidalDb};

use super::inputs::{Input, InputArguments, OnError, progress};
use crate::cli::WrongUsage;
use crate::cli::output::counted;

/// One run over some inputs.
pub(super) struct Application<'a> {
    db: &'a TidalDb,
    subject: &'a Subject,
    on_error: OnError,
    resume: bool,
    rejects: Option<BufWriter<File>>,
    /// The lines that took effect so far.
    applied: u64,
    /// Whether signals were applied that may not last.
    unflushed_signals: bool,
}

/// The transitions that may have taken effect before the run was interrupted.
struct Doubt {
    after_ns: u64,
    /// How many of a user's transitions since then were met in the input.
    met: HashMap<u64, usize>,
}

impl<'a> Application<'a> {
    pub(super) fn new(
        db: &'a TidalDb,
        subject: &'a Subject,
        arguments: &InputArguments,
    ) -> Result<Self> {
        let rejects = match &arguments.rejects {
            Some(path) => Some(BufWriter::new(
                File::options()
                    .create(true)
                    .write(true)
                    .append(arguments.resume)
                    .truncate(!arguments.resume)
                    .open(path)
                    .with_context(|| format!("`{}`", path.display()))?,
            )),
            None => None,
        };
        Ok(Application {
            db,
            subject,
            on_error: arguments.on_error,
            resume: arguments.resume,
            rejects,
            applied: 0,
            unflushed_signals: false,
        })
    }

    /// Applies every event and makes all of it durable; returns how many lines took
    /// effect.
    pub(super) fn run(mut self, inputs: &[Input]) -> Result<u64> {
        let progress = progress(inputs);
        let read = inputs
            .iter()
            .try_for_each(|input| self.read(input, &progress));
        progress.finish_and_clear();
        let flushed = self.db.flush().map_err(anyhow::Error::from);
        if let Some(rejects) = &mut self.rejects {
            rejects.flush().context("the file of rejects")?;
        }
        let applied = counted(self.applied, "line", "lines");
        match (read, flushed) {
            (Ok(()), Ok(())) => Ok(self.applied),
            (Err(error), Ok(())) if error.is::<WrongUsage>() && self.applied == 0 => Err(error),
            (Err(error), Ok(())) => Err(anyhow!(
                "{error:#}; what came before took effect and is kept: {applied}"
            )),
            (Ok(()), Err(error)) => Err(anyhow!("{error:#}; what was read may be lost: {applied}")),
            (Err(error), Err(flush_error)) => Err(anyhow!(
                "{error:#}; what came before may be lost: {applied} ({flush_error:#})"
            )),
        }
    }

    fn read(&mut self, input: &Input, progress: &ProgressBar) -> Result<()> {
        let name = input.name();
        let stored = if self.resume {
            self.db.position(&name)?
        } else {
            None
        };
        if stored.is_none() {
            // Whatever takes effect from here on is behind this.
            let start = Position {
                input: &name,
                records: 0,
            };
            self.db.advance(&start, 0);
            self.db.flush()?;
        }
        let already_read = stored.map_or(0, |position| position.records);
        let mut doubt = stored.map(|position| Doubt {
            after_ns: position.at_ns,
            met: HashMap::new(),
        });
        let mut events = EventReader::new(input.open(progress)?, input.format, self.subject)
            .map_err(|error| header_error(input, error))?;
        for records in 1.. {
            let event = events.next_event();
            if records <= already_read {
                match event {
                    Ok(Some(_)) | Err(ReadError::Line(_)) => continue,
                    Ok(None) => {
                        return Err(anyhow!(
                            "{input}: it ends before record {already_read}, up to which it was read before; without --resume it is read from the start"
                        ));
                    }
                    Err(error) => return Err(error).with_context(|| input.to_string()),
                }
            }
            let position = Position {
                input: &name,
                records,
            };
            let refused = match event {
                Ok(None) => return Ok(()),
                Ok(Some(event)) => match self.apply(&event, &position, &mut doubt) {
                    Ok(()) => {
                        self.applied += 1;
                        continue;
                    }
                    Err(error) if is_refusal(&error) => BadLine {
                        line: events.line(),
                        reason: error.to_string(),
                        text: events.text(),
                    },
                    Err(error) => {
                        return Err(error).with_context(|| format!("{input}:{}", events.line()));
                    }
                },
                Err(ReadError::Line(bad)) => bad,
                Err(error) => return Err(error).with_context(|| input.to_string()),
            };
            self.reject(input, &position, &refused)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        event: &Event<'_>,
        position: &Position<'_>,
        doubt: &mut Option<Doubt>,
    ) -> Result<(), Error> {
        let wants_profiles = matches!(self.subject, Subject::Profiles(_));
        if wants_profiles && !matches!(event, Event::Profile { .. }) {
            return Err(Error::InvalidArgument {
                what: "profile",
                reason: "the line is an event of another type; `ingest` takes those".to_owned(),
            });
        }
        if let Event::Signal {
            user_id,
            item_id,
            kind,
            weight,
        } = event
        {
            // Behind a signal nothing has taken effect that the store did not keep.
            *doubt = None;
            let signal = Signal {
                item_id: *item_id,
                kind,
                weight: *weight,
            };
            self.db.signal_at(position, *user_id, &signal)?;
            self.unflushed_signals = true;
            return Ok(());
        }
        if self.unflushed_signals {
            self.db.flush()?;
            self.unflushed_signals = false;
        }
        self.apply_at_once(event, doubt)?;
        self.db.advance(position, 0);
        Ok(())
    }

    fn apply_at_once(&self, event: &Event<'_>, doubt: &mut Option<Doubt>) -> Result<(), Error> {
        match event {
            Event::Leave { user_id } => {
                if !self.took_effect(*user_id, MembershipStatus::Left, doubt)? {
                    self.db.leave_community_layer(*user_id)?;
                }
                Ok(())
            }
            Event::Rejoin { user_id } => {
                if !self.took_effect(*user_id, MembershipStatus::Active, doubt)? {
                    self.db.rejoin_community_layer(*user_id)?;
                }
                Ok(())
            }
            Event::Join { user_id, community } => self.db.join_community(*user_id, community),
            Event::Quit { user_id, community } => self.db.quit_community(*user_id, community),
            Event::Profile {
                user_id,
                attributes,
            } => self.db.set_profile(*user_id, attributes),
            // Signals are not applied at once.
            Event::Signal { .. } => Ok(()),
        }
    }

    /// Whether a transition that is read again took effect before the interruption.
    fn took_effect(
        &self,
        user_id: u64,
        to: MembershipStatus,
        doubt: &mut Option<Doubt>,
    ) -> Result<bool, Error> {
        let Some(doubt) = doubt else {
            return Ok(false);
        };
        let history = self.db.community_layer_history(user_id)?;
        let mut since = history
            .iter()
            .filter(|transition| transition.at_ns > doubt.after_ns);
        let met = doubt.met.entry(user_id).or_default();
        let took_effect = since
            .nth(*met)
            .is_some_and(|transition| transition.to == to);
        // One that did not take effect will now, and be the next in the history.
        *met += 1;
        Ok(took_effect)
    }

    fn reject(&mut self, input: &Input, position: &Position<'_>, bad: &BadLine) -> Result<()> {
        if self.on_error == OnError::Stop {
            // The position stays before the line, so that it can be mended and read.
            self.db.count_rejected();
            return Err(anyhow!("{input}:{}: {}", bad.line, bad.reason));
        }
        self.db.advance(position, 1);
        if let Some(rejects) = &mut self.rejects {
            let reject = Reject {
                file: input.to_string(),
                line: bad.line,
                reason: &bad.reason,
                text: String::from_utf8_lossy(&bad.text).into_owned(),
            };
            serde_json::to_writer(&mut *rejects, &reject).context("the file of rejects")?;
            rejects.write_all(b"\n").context("the file of rejects")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Reject<'a> {
    file: String,
    line: u64,
    reason: &'a str,
    text: String,
}

/// A header that does not fit is a matter of which columns were named.
fn header_error(input: &Input, error: ReadError) -> anyhow::Error {
    match error {
        ReadError::Header(reason) => WrongUsage(format!(
            "{input}: header: {reason} (--user-column, --item-column, --weight-column, --kind-column, --kind)"
        ))
        .into(),
        other => anyhow::Error::from(other).context(input.to_string()),
    }
}

/// Whether the event was at fault, not the store.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidSignal { .. } | Error::InvalidArgument { .. } | Error::NotFound { .. }
    )
}
