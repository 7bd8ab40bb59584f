//! The power fails at any moment of a run, and the store is opened.
//!
//! A process that is killed leaves its files as it wrote them. A power cut does not:
//! what was appended and not yet synced may be gone, torn, or full of zeros, a file
//! that was renamed may have its old name, and sled, which is flushed seldom and syncs
//! nothing by itself, may have nothing at all. An acknowledged leave that is not back
//! after that is a gate that opens by itself.
//!
//! So a disk records every operation of the journal in a run, in between with what was
//! acknowledged. For each point of the record, each state that a disk may then be in
//! is opened beside three states of sled: nothing, a copy from before, and a copy of
//! that moment.
//!
//! - [`recorder`]: the disk that records
//! - [`states`]: which states a disk may be in after a part of a record
//! - [`replays`]: the runs, and what must be there after each of these states

mod recorder;
mod replays;
mod states;
