//! Files of a store are damaged, one at a time or two at once, and it is opened.
//!
//! sled loses records without a word when its files are damaged: of 200 that were
//! flushed, 105 came back after its data file had been cut to half, and none after it
//! had been cut to nothing; a snapshot file that was emptied made its opener panic. A
//! lost record is a gate that opens by itself. So, whatever is done to the files:
//! opening works or says what is wrong and what to do, never panics, and never is a
//! user who left let in, now or at the opening after. Where only sled or only the
//! journal is damaged, every membership and every history is there.
//!
//! - [`store`]: the store that is damaged, and what is known of it
//! - [`one_file`]: each file cut, deleted, or hit at random places
//! - [`two_files`]: the journal and sled of different moments or stores, or both
//!   damaged
//! - [`ways_out`]: what the errors tell to do works

mod one_file;
mod store;
mod two_files;
mod ways_out;
