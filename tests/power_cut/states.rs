//! Which states a disk may be in when the power fails after a part of a record.
//!
//! Of one file, what was done up to its last sync is there. Of what was done later the
//! first operations are there, and of a write after those any part: its beginning, all
//! but a piece in its middle, or a piece of it alone. Where the file grew, what of it is
//! not there is zeros, or behind its end. Of what was done to names since the folder was
//! last synced the first changes are there. A file that was never synced may be empty.

use super::recorder::{Event, FileId, Names, State, put};

/// A block may be torn at every byte, and many blocks, as they are written when the
/// journal is made anew, at this many places; zeros begin at every eighth of these.
const PLACES: usize = 60;
const ZEROS_EVERY: usize = 8;

/// A disk writes 512 bytes at once or more; smaller pieces tell more.
const PIECE: usize = 16;

/// The states, the one in which nothing is lost among them.
pub(super) fn after(start: &State, events: &[Event]) -> Vec<State> {
    let mut whole = start.clone();
    for event in events {
        whole.happen(event);
    }
    // One file differs at a time: only one has operations that are not synced, but
    // while the journal is written anew, and then the other is not in use.
    let mut states = Vec::new();
    for names in names(start, events) {
        let state = State {
            names,
            files: whole.files.clone(),
        };
        for id in whole.files.keys() {
            for content in contents(start, events, *id) {
                let mut state = state.clone();
                state.files.insert(*id, content);
                if !states.iter().any(|other| same(other, &state)) {
                    states.push(state);
                }
            }
        }
        if whole.files.is_empty() {
            states.push(state);
        }
    }
    states
}

/// Whether nobody can tell two states apart.
fn same(one: &State, other: &State) -> bool {
    let visible = |state: &State| -> Vec<_> {
        let content = |id: &FileId| state.files.get(id).cloned();
        let names = state.names.iter();
        names
            .map(|(path, id)| (path.clone(), content(id)))
            .collect()
    };
    visible(one) == visible(other)
}

fn names(start: &State, events: &[Event]) -> Vec<Names> {
    let mut state = start.clone();
    let mut possible = vec![state.names.clone()];
    for event in events {
        state.happen(event);
        match event {
            Event::SyncFolder => possible = vec![state.names.clone()],
            Event::Create(..) | Event::Rename(..) | Event::Remove(_) => {
                possible.push(state.names.clone());
            }
            _ => {}
        }
    }
    possible
}

fn contents(start: &State, events: &[Event], file: FileId) -> Vec<Vec<u8>> {
    let mut content = start.files.get(&file).cloned().unwrap_or_default();
    let mut possible = vec![content.clone()];
    for event in events {
        match event {
            Event::Write(id, offset, bytes) if *id == file => {
                possible.extend(torn(&content, *offset, bytes));
                put(&mut content, *offset, bytes);
                possible.push(content.clone());
            }
            Event::Truncate(id, length) if *id == file => {
                content.resize(usize::try_from(*length).unwrap(), 0);
                possible.push(content.clone());
            }
            Event::Sync(id) if *id == file => possible = vec![content.clone()],
            _ => {}
        }
    }
    possible.dedup();
    possible
}

/// What a file may hold after a write at `offset` that the power cut short.
fn torn(content: &[u8], offset: usize, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut whole = content.to_vec();
    put(&mut whole, offset, bytes);
    let mut without = content.to_vec();
    without.resize(whole.len(), 0);
    // The zeros behind what was written are the same wherever they are cut.
    let used = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);

    let mut possible = Vec::new();
    for (place, length) in (0..=used).step_by(1 + used / PLACES).enumerate() {
        let mut beginning = without.clone();
        beginning[offset..offset + length].copy_from_slice(&bytes[..length]);
        if place % ZEROS_EVERY == 0 {
            possible.push(beginning.clone());
        }
        beginning.truncate(content.len().max(offset + length));
        possible.push(beginning);
    }
    let length = PIECE.max(used / PLACES);
    for start in (0..used).step_by(length) {
        let piece = offset + start..offset + used.min(start + length);
        let (mut lost, mut alone) = (whole.clone(), without.clone());
        lost[piece.clone()].copy_from_slice(&without[piece.clone()]);
        alone[piece.clone()].copy_from_slice(&whole[piece]);
        possible.extend([lost, alone]);
    }
    possible
}
