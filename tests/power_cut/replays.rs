//! The runs, and what must be there after each state that a power cut may leave.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tidegate::{Config, MembershipStatus, TidalDb};

use super::recorder::{Event, Recorder, State};
use super::states;
use crate::support::{copy_folder, signal};

const USERS: u64 = 4;
const TRANSITIONS: usize = 12;

/// Who does enough to make the journal worth compacting, and how much.
const BUSY_USER: u64 = USERS;
const BUSY_TRANSITIONS: usize = 120;

/// What was recorded: the disk at the beginning, what was done to it, and sled as it
/// was after so many events.
struct Run {
    folder: TempDir,
    start: State,
    events: Vec<Event>,
    sleds: Vec<(usize, TempDir)>,
    /// Transitions from before the run.
    before: Vec<(u64, MembershipStatus)>,
    /// Whether the journal had all of these when the run began.
    journal_is_whole: bool,
}

fn open(folder: &Path, disk: &Recorder) -> tidegate::Result<TidalDb> {
    TidalDb::from_config(Config::new(folder).disk(Arc::new(disk.clone())))
}

fn copy_of_sled(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&folder.join("sled"), copy.path());
    copy
}

/// Which user's turn it is, and where to: every user leaves, some come back, some leave
/// again.
fn plan() -> impl Iterator<Item = (u64, MembershipStatus)> {
    (0..TRANSITIONS).map(|number| {
        let round = number / usize::try_from(USERS).unwrap();
        let to = match round % 2 {
            0 => MembershipStatus::Left,
            _ => MembershipStatus::Active,
        };
        (number as u64 % USERS, to)
    })
}

fn transition(db: &TidalDb, user_id: u64, to: MembershipStatus) {
    match to {
        MembershipStatus::Left => db.leave_community_layer(user_id).unwrap(),
        MembershipStatus::Active => db.rejoin_community_layer(user_id).unwrap(),
    }
}

impl Run {
    /// Records what opening does and the first transitions of the plan after it.
    fn record(
        folder: TempDir,
        start: State,
        before: Vec<(u64, MembershipStatus)>,
        journal_is_whole: bool,
        transitions: usize,
    ) -> Self {
        let disk = Recorder::holding(start.clone());
        let mut sleds = vec![(0, copy_of_sled(folder.path()))];
        {
            let db = open(folder.path(), &disk).unwrap();
            for (number, (user_id, to)) in plan().take(transitions).enumerate() {
                transition(&db, user_id, to);
                disk.happen(Event::Acknowledged(user_id, to));
                if number == transitions / 2 {
                    // Otherwise sled's files stay as they were.
                    db.flush().unwrap();
                }
                sleds.push((disk.events().len(), copy_of_sled(folder.path())));
            }
        }
        Run {
            folder,
            start,
            events: disk.events(),
            sleds,
            before,
            journal_is_whole,
        }
    }

    /// Cuts the power after each event, and checks each state that the disk may be
    /// in. Returns how many were opened.
    fn check(&self) -> usize {
        let mut opened = 0;
        for cut in 0..=self.events.len() {
            let (happened, _) = self.events.split_at(cut);
            for (number, state) in states::after(&self.start, happened).iter().enumerate() {
                let what = format!("cut after {cut} events, state {number}");
                for sled in self.sleds_at(cut, number) {
                    self.check_state(happened, state, sled, &what);
                    opened += 1;
                }
            }
        }
        opened
    }

    /// Nothing, what was there at the beginning, and the latest copy; for most of the
    /// many ways in which a block may be torn one of these in turn.
    fn sleds_at(&self, cut: usize, state: usize) -> Vec<Option<&Path>> {
        let latest = self.sleds.iter().rfind(|(events, _)| *events <= cut);
        let mut all = vec![
            Some(self.sleds[0].1.path()),
            latest.map(|(_, sled)| sled.path()),
        ];
        // What the journal does not have yet, only sled has.
        if self.journal_is_whole || self.events[..cut].contains(&Event::SyncFolder) {
            all.push(None);
        }
        if state < 4 {
            all
        } else {
            vec![all[state % all.len()]]
        }
    }

    fn check_state(&self, happened: &[Event], state: &State, sled: Option<&Path>, what: &str) {
        let folder = self.folder.path();
        let _ = fs::remove_dir_all(folder.join("sled"));
        if let Some(sled) = sled {
            copy_folder(sled, &folder.join("sled"));
        }
        let mut acknowledged: BTreeMap<u64, Vec<MembershipStatus>> = BTreeMap::new();
        let during = happened.iter().filter_map(|event| match event {
            Event::Acknowledged(user_id, to) => Some((*user_id, *to)),
            _ => None,
        });
        for (user_id, to) in self.before.iter().copied().chain(during) {
            acknowledged.entry(user_id).or_default().push(to);
        }
        // The one that may have been under way.
        let next =
            plan().nth(acknowledged.values().map(Vec::len).sum::<usize>() - self.before.len());

        let disk = Recorder::holding(state.clone());
        for opening in ["first", "second"] {
            let what = format!("{what}, {opening} opening, sled {sled:?}");
            let db = open(folder, &disk).unwrap_or_else(|error| panic!("{what}: {error}"));
            for user_id in (0..USERS).chain([BUSY_USER]) {
                let expected = acknowledged.get(&user_id).cloned().unwrap_or_default();
                check_user(&db, user_id, &expected, next, &what);
            }
            let found = db.verify().unwrap();
            assert!(found.is_clean(), "{what}: {found:?}");
        }
    }
}

/// Checks that a user's acknowledged transitions are there, and no other but the one
/// that may have been under way.
fn check_user(
    db: &TidalDb,
    user_id: u64,
    acknowledged: &[MembershipStatus],
    next: Option<(u64, MembershipStatus)>,
    what: &str,
) {
    let history = db.community_layer_history(user_id).unwrap();
    let found: Vec<MembershipStatus> = history.iter().map(|transition| transition.to).collect();
    let mut with_next = acknowledged.to_vec();
    with_next.extend(next.filter(|(of, _)| *of == user_id).map(|(_, to)| to));
    assert!(
        found == acknowledged || found == with_next,
        "{what}: user {user_id} has {found:?} instead of {acknowledged:?}"
    );
    let last = found.last().copied().unwrap_or(MembershipStatus::Active);
    let status = db.community_layer_status(user_id).unwrap();
    assert_eq!(status.status, last, "{what}: user {user_id}");
    let gated = signal(db, user_id, 1).gated;
    assert_eq!(
        gated,
        last == MembershipStatus::Left,
        "{what}: user {user_id}"
    );
}

/// A store after these transitions, its journal on a disk in memory.
fn used_store(transitions: &[(u64, MembershipStatus)]) -> (TempDir, State) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Recorder::default();
    let db = open(folder.path(), &disk).unwrap();
    for (user_id, to) in transitions {
        transition(&db, *user_id, *to);
    }
    drop(db);
    (folder, disk.state())
}

#[test]
fn a_power_cut_in_the_life_of_a_new_store_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sled")).unwrap();
    let opened = Run::record(folder, State::default(), Vec::new(), true, TRANSITIONS).check();
    println!("{opened} states were opened");
}

/// Records and checks a run that begins with what `harm` makes of a journal; sled has
/// all that it had.
fn check_rewriting(harm: impl FnOnce(&mut State, &Path)) {
    let before: Vec<_> = plan().collect();
    let (folder, mut start) = used_store(&before);
    harm(&mut start, &folder.path().join("journal"));
    let opened = Run::record(folder, start, before, false, 2).check();
    println!("{opened} states were opened");
}

#[test]
fn a_power_cut_while_a_damaged_journal_is_written_anew_loses_nothing_acknowledged() {
    check_rewriting(|disk, journal| {
        let bytes = disk.files.get_mut(&disk.names[journal]).unwrap();
        // In the first block.
        bytes[40] ^= 0xFF;
    });
}

#[test]
fn a_power_cut_while_a_deleted_journal_is_written_anew_loses_nothing_acknowledged() {
    check_rewriting(|disk, journal| {
        disk.names.remove(journal);
    });
}

#[test]
fn a_power_cut_while_the_journal_is_compacted_loses_nothing_acknowledged() {
    let busy = [MembershipStatus::Left, MembershipStatus::Active]
        .into_iter()
        .cycle()
        .take(BUSY_TRANSITIONS)
        .map(|to| (BUSY_USER, to));
    let before: Vec<_> = plan().chain(busy).collect();
    let (folder, start) = used_store(&before);
    let run = Run::record(folder, start, before, true, 2);
    let renamed = |event: &Event| matches!(event, Event::Rename(_, to) if to.ends_with("journal"));
    assert!(run.events.iter().any(renamed), "nothing was compacted");
    println!("{} states were opened", run.check());
}
