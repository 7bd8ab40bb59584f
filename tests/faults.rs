//! Every operation on storage and files that the calls in [`Call`], opening and closing
//! make, failed one after the other. After each fault the invariants hold, in the process that goes on and in
//! the one that opens what a power cut at that moment leaves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::MembershipStatus::{self, Active, Left};
use tidegate::storage::StorageEngine as _;
use tidegate::{CommunityMembership, Config, Error, Result, Scope, TidalDb, Transition};

use crate::support::faults::{Fault, Machine, Operation};
use crate::support::{cohort, community, profile, repository, view, views};

const ITEM: u64 = 7;

/// Users whose signals count in the community and, for the even ones, in the cohort.
/// 1 never left, 2 left, 3 rejoined, 4 never left and has not been asked about since
/// the store was opened, 5 is left alone until the disk is full.
const USERS: std::ops::RangeInclusive<u64> = 1..=5;

/// The folder that holds the lock and the compiled component.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn open(&self, machine: &Machine) -> Result<TidalDb> {
        TidalDb::from_config(
            Config::new(self.0.path())
                // Never by itself: faults hit what the test calls.
                .flush_every(Duration::from_hours(1))
                .engine(Arc::new(machine.clone()))
                .disk(Arc::new(machine.clone())),
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Leave(u64),
    Rejoin(u64),
    Signal(u64),
    Flush,
    SetProfile(u64),
    DefineCohort,
    Join,
    Quit,
    Aggregate,
    Top,
    Status,
    History,
    Verify,
    Backup,
    Import(u64),
    SwapComponent,
}

/// How often the base ledger, the community and the cohort gained something.
type Counts = [u64; 3];

fn scopes() -> [Scope; 3] {
    [Scope::Base, community("film"), cohort("even")]
}

/// Transitions that one call made, all or none.
#[derive(Clone, Debug)]
struct Attempt {
    to: Vec<MembershipStatus>,
    acknowledged: bool,
}

/// What is known of a store from what its calls returned.
#[derive(Clone, Debug, Default)]
struct Model {
    attempts: BTreeMap<u64, Vec<Attempt>>,
    gained: Counts,
    /// What storage may hold of `gained`.
    stored: Vec<Counts>,
}

impl Model {
    fn call(&mut self, db: &TidalDb, call: Call) -> Result<()> {
        match call {
            Call::Leave(user_id) => {
                let result = db.leave_community_layer(user_id);
                self.note_transition(user_id, Left, result)
            }
            Call::Rejoin(user_id) => {
                let result = db.rejoin_community_layer(user_id);
                self.note_transition(user_id, Active, result)
            }
            Call::Signal(user_id) => self.signal(db, user_id).map(drop),
            Call::Flush => {
                let result = db.flush();
                self.note_flush(result.is_ok());
                result
            }
            Call::SetProfile(user_id) => {
                db.set_profile(user_id, &profile(&serde_json::json!({"number": 1})))
            }
            Call::DefineCohort => db.define_cohort("even", "number > 2"),
            Call::Join => db.join_community(8, "music"),
            Call::Quit => db.quit_community(9, "games"),
            Call::Aggregate => db.aggregate(&scopes()[1], ITEM, "view").map(drop),
            Call::Top => db.top(&scopes()[1], None, 10).map(drop),
            Call::Status => db.community_layer_status(2).map(drop),
            Call::History => db.community_layer_history(3).map(drop),
            Call::Verify => db.verify().map(drop),
            Call::Backup => {
                let result = db.backup(&mut Vec::new());
                // It writes what is in memory first, and need not sync it.
                self.note_flush(false);
                result
            }
            Call::Import(user_id) => {
                let (membership, transitions) = imported(user_id);
                let result = db.import_membership(&membership, &transitions);
                // What is said here and not of a leave: nothing was changed.
                if !matches!(result, Err(Error::Storage { .. })) {
                    self.note_transitions(user_id, &[Left, Active, Left], result.is_ok());
                }
                result
            }
            Call::SwapComponent => db
                .swap_component(repository().join("guest/membership.wasm"))
                .map(drop),
        }
    }

    fn note_transition(
        &mut self,
        user_id: u64,
        to: MembershipStatus,
        result: Result<()>,
    ) -> Result<()> {
        self.note_transitions(user_id, &[to], result.is_ok());
        result
    }

    fn note_transitions(&mut self, user_id: u64, to: &[MembershipStatus], acknowledged: bool) {
        let to = to.to_vec();
        let attempt = Attempt { to, acknowledged };
        self.attempts.entry(user_id).or_default().push(attempt);
    }

    fn note_flush(&mut self, succeeded: bool) {
        if succeeded {
            self.stored.clear();
        }
        self.stored.push(self.gained);
    }

    /// Whether the gate held the signal back.
    fn signal(&mut self, db: &TidalDb, user_id: u64) -> Result<bool> {
        let receipt = db.signal_with_context(user_id, &view(ITEM))?;
        let gained = [1, receipt.communities.into(), receipt.cohorts.into()];
        for (count, gained) in self.gained.iter_mut().zip(gained) {
            *count += gained;
        }
        assert!(!receipt.gated || gained == [1, 0, 0]);
        Ok(receipt.gated)
    }

    fn attempts(&self, user_id: u64) -> &[Attempt] {
        self.attempts.get(&user_id).map_or(&[], Vec::as_slice)
    }

    fn acknowledged(&self, user_id: u64) -> Vec<MembershipStatus> {
        self.attempts(user_id)
            .iter()
            .filter(|attempt| attempt.acknowledged)
            .flat_map(|attempt| attempt.to.clone())
            .collect()
    }

    /// What must hold in the process that saw the fault.
    fn check_running(&mut self, db: &TidalDb) {
        for user_id in USERS {
            let standing = self.acknowledged(user_id).last().copied().unwrap_or(Active);
            let failed = self
                .attempts(user_id)
                .last()
                .filter(|attempt| !attempt.acknowledged)
                .and_then(|attempt| attempt.to.last().copied());
            let status = db.community_layer_status(user_id);
            match (&status, failed) {
                (Err(Error::NotDurable { .. }), Some(_)) => {}
                (Ok(found), None | Some(Active)) => assert_eq!(found.status, standing),
                _ => panic!("user {user_id}: {status:?}, {failed:?}"),
            }
            let gated = self.signal(db, user_id).unwrap();
            match (failed, standing) {
                (Some(Left), _) | (_, Left) => assert!(gated, "user {user_id}"),
                (None, Active) => assert!(!gated, "user {user_id}"),
                // A rejoin of an active user: as it was, or shut.
                (Some(Active), Active) => assert!(status.is_ok() || gated),
            }
        }
    }

    /// What must hold once nothing fails any more and all was repeated.
    fn check_settled(&mut self, db: &TidalDb) {
        self.check_running(db);
        for user_id in USERS {
            let history = check_history(db, user_id);
            assert_eq!(history, self.acknowledged(user_id), "user {user_id}");
        }
        assert!(db.verify().unwrap().is_clean());
        self.call(db, Call::Flush).unwrap();
        assert_eq!(counts(db), self.gained);
        let transitions = self.attempts.values().flatten();
        let acknowledged: usize = transitions
            .filter(|attempt| attempt.acknowledged)
            .map(|attempt| attempt.to.len())
            .sum();
        let stats = db.stats();
        assert_eq!(stats.leaves + stats.rejoins, acknowledged as u64);
        assert_eq!(stats.signals, self.gained[0]);
    }

    /// What must hold of a store that was opened after the process ended.
    fn check_opened(&self, db: &TidalDb) {
        assert!(db.verify().unwrap().is_clean());
        for user_id in USERS {
            let history = check_history(db, user_id);
            let attempts = self.attempts(user_id);
            assert!(explains(attempts, &history), "{attempts:?} {history:?}");
        }
        let found = counts(db);
        assert!(self.stored.contains(&found), "{found:?} {:?}", self.stored);
        assert_eq!(db.stats().signals, found[0]);
        // Last, for these signals are no part of the model.
        for user_id in USERS {
            let left = db.community_layer_status(user_id).unwrap().status == Left;
            let receipt = db.signal_with_context(user_id, &view(ITEM)).unwrap();
            assert_eq!(receipt.gated, left, "user {user_id}");
        }
    }

    /// The same for all that a power cut may leave of this machine.
    fn check_after_power_cut(&self, machine: &Machine, folder: &Folder) {
        for machine in machine.after_power_cut() {
            let db = folder.open(&machine).unwrap();
            self.check_opened(&db);
            machine.switch_off();
        }
    }
}

/// The history of a user, whose instants rise and whose end is the status.
fn check_history(db: &TidalDb, user_id: u64) -> Vec<MembershipStatus> {
    let history = db.community_layer_history(user_id).unwrap();
    assert!(history.is_sorted_by_key(|transition| transition.at_ns));
    let status = db.community_layer_status(user_id).unwrap();
    let standing = history.last().map_or(Active, |transition| transition.to);
    assert_eq!(status.status, standing, "user {user_id}");
    let boundary = history.iter().rfind(|transition| transition.to == Left);
    let boundary = boundary.map(|transition| transition.at_ns);
    assert_eq!(status.left_at_ns, boundary, "user {user_id}");
    history.iter().map(|transition| transition.to).collect()
}

/// Whether a history has all acknowledged transitions and at most the others.
fn explains(attempts: &[Attempt], history: &[MembershipStatus]) -> bool {
    let Some((attempt, later)) = attempts.split_first() else {
        return history.is_empty();
    };
    let rest = history.strip_prefix(&attempt.to[..]);
    rest.is_some_and(|rest| explains(later, rest))
        || (!attempt.acknowledged && explains(later, history))
}

/// A user who left, came back and left in another store.
fn imported(user_id: u64) -> (CommunityMembership, [Transition; 3]) {
    let at_ns = 1_700_000_000_000_000_000;
    let membership = CommunityMembership {
        user_id,
        status: Left,
        left_at_ns: Some(at_ns + 2),
    };
    let transitions = [(Left, 0), (Active, 1), (Left, 2)];
    let transitions = transitions.map(|(to, later)| Transition {
        to,
        at_ns: at_ns + later,
    });
    (membership, transitions)
}

fn counts(db: &TidalDb) -> Counts {
    scopes().map(|scope| views(db, &scope, ITEM))
}

/// A store with some of everything. Its last transitions are in the journal, and
/// not synced in the store.
fn furnished(folder: &Folder) -> (Machine, Model) {
    let machine = Machine::default();
    let mut model = Model::default();
    let db = folder.open(&machine).unwrap();
    for user_id in USERS {
        let number = profile(&serde_json::json!({"number": user_id}));
        db.set_profile(user_id, &number).unwrap();
        db.join_community(user_id, "film").unwrap();
    }
    db.define_cohort("even", "number % 2 == 0").unwrap();
    db.join_community(9, "games").unwrap();
    for call in [
        Call::Signal(1),
        Call::Signal(2),
        Call::Leave(3),
        Call::Flush,
        Call::Leave(2),
        Call::Rejoin(3),
        Call::Signal(2),
        Call::Signal(3),
    ] {
        model.call(&db, call).unwrap();
    }
    assert_eq!(model.gained, [4, 3, 1]);
    // Asking for it puts them into the store, and syncs nothing.
    db.community_layer_history(2).unwrap();
    machine.switch_off();
    drop(db);
    // The signals since the flush were lost with the process.
    model.gained = [2, 2, 1];
    (machine.copy(), model)
}

/// Runs `run` without a fault to learn its operations, and then once for each of them
/// and each way in which it can fail. Returns how often.
fn for_each_fault(run: impl Fn(Option<(usize, Fault)>) -> Vec<Operation>) -> usize {
    let mut runs = 0;
    for (at, operation) in run(None).into_iter().enumerate() {
        for fault in operation.faults() {
            let operations = run(Some((at, *fault)));
            assert_eq!(operations[at], operation);
            runs += 1;
        }
    }
    println!("{runs} faults");
    runs
}

/// Fails each operation of a call on an open store.
fn check_call(call: Call) -> usize {
    let (folder, other_folder) = (Folder::new(), Folder::new());
    let (furnished, model) = furnished(&folder);
    for_each_fault(|planned| {
        let (machine, mut model) = (furnished.copy(), model.clone());
        let db = folder.open(&machine).unwrap();
        for user_id in [1, 3, 2] {
            model.signal(&db, user_id).unwrap();
        }
        machine.heal();
        if let Some((at, fault)) = planned {
            machine.plan(at, fault);
        }
        let result = model.call(&db, call);
        if planned.is_none() {
            result.unwrap();
            return machine.heal();
        }
        if matches!(planned, Some((_, Fault::Full | Fault::Gone))) {
            // Where the call itself could do without the write, this one can't.
            model.call(&db, Call::Leave(5)).unwrap_err();
        }
        let operations = machine.heal();
        model.check_after_power_cut(&machine, &other_folder);
        model.check_running(&db);

        if result.is_err() {
            model.call(&db, call).unwrap();
        }
        if !model.attempts(5).is_empty() {
            model.call(&db, Call::Leave(5)).unwrap();
        }
        model.check_settled(&db);
        model.check_after_power_cut(&machine, &other_folder);
        drop(db);
        model.check_opened(&folder.open(&machine).unwrap());
        operations
    })
}

/// Fails each operation of opening a store.
fn check_opening(folder: &Folder, machine: &Machine, model: &Model) -> usize {
    let other_folder = Folder::new();
    for_each_fault(|planned| {
        let machine = machine.copy();
        if let Some((at, fault)) = planned {
            machine.plan(at, fault);
        }
        let opened = folder.open(&machine);
        let operations = machine.heal();
        model.check_after_power_cut(&machine, &other_folder);
        // Without what closing it would write.
        if let Ok(db) = opened {
            let closed = machine.copy();
            machine.switch_off();
            drop(db);
            model.check_opened(&folder.open(&closed).unwrap());
        } else {
            model.check_opened(&folder.open(&machine).unwrap());
        }
        operations
    })
}

#[test]
fn leaves_and_rejoins_hold_through_every_fault() {
    for call in [
        Call::Leave(1),
        Call::Leave(2),
        Call::Leave(3),
        Call::Leave(4),
        Call::Rejoin(1),
        Call::Rejoin(2),
        Call::Rejoin(3),
    ] {
        // At least: write, sync.
        assert!(check_call(call) >= 6, "{call:?}");
    }
}

#[test]
fn signals_and_flushes_hold_through_every_fault() {
    assert!(check_call(Call::Signal(4)) >= 2);
    assert!(check_call(Call::Flush) >= 8);
}

#[test]
fn other_calls_hold_through_every_fault() {
    for (call, faults) in [
        (Call::SetProfile(4), 3),
        (Call::DefineCohort, 10),
        (Call::Join, 3),
        (Call::Quit, 6),
        (Call::Aggregate, 1),
        (Call::Top, 1),
        (Call::Status, 0),
        (Call::History, 1),
        (Call::Verify, 1),
        (Call::Backup, 1),
        (Call::Import(4), 6),
        (Call::SwapComponent, 1),
    ] {
        assert!(check_call(call) >= faults, "{call:?}");
    }
}

#[test]
fn closing_a_store_holds_through_every_fault() {
    let folder = Folder::new();
    let (furnished, model) = furnished(&folder);
    let runs = for_each_fault(|planned| {
        let (machine, mut model) = (furnished.copy(), model.clone());
        let db = folder.open(&machine).unwrap();
        model.signal(&db, 1).unwrap();
        model.call(&db, Call::Leave(1)).unwrap();
        machine.heal();
        if let Some((at, fault)) = planned {
            machine.plan(at, fault);
        }
        drop(db);
        model.note_flush(planned.is_none());
        let operations = machine.heal();
        model.check_after_power_cut(&machine, &folder);
        operations
    });
    assert!(runs >= 8);
}

#[test]
fn opening_holds_through_every_fault() {
    let folder = Folder::new();
    let (machine, model) = furnished(&folder);
    let journal = tidegate::Disk::read(&machine, Path::new("journal")).unwrap();
    let mut damaged = journal.clone().unwrap();
    // In the first of its blocks.
    damaged[50] ^= 1;
    let with_journal = |content: Option<Vec<u8>>| {
        let machine = machine.copy();
        machine.set_file(Path::new("journal"), content);
        machine
    };
    let behind = machine.after_power_cut().swap_remove(0);
    let torn = with_journal(journal.map(|mut bytes| {
        bytes.extend_from_slice(b"tgB1");
        bytes
    }));
    let gone = with_journal(None);
    // Nobody can do without both.
    gone.flush().unwrap();
    for (machine, faults) in [
        (&machine, 5),
        (&behind, 10),
        (&torn, 8),
        (&with_journal(Some(damaged)), 20),
        (&gone, 15),
    ] {
        assert!(check_opening(&folder, machine, &model) >= faults);
    }
}

#[test]
fn a_store_that_failed_to_be_made_can_be_made() {
    let folder = Folder::new();
    let runs = for_each_fault(|planned| {
        let machine = Machine::default();
        if let Some((at, fault)) = planned {
            machine.plan(at, fault);
        }
        let opened = folder.open(&machine);
        let operations = machine.heal();
        drop(opened);
        for machine in machine.after_power_cut() {
            let db = folder.open(&machine).unwrap();
            db.leave_community_layer(1).unwrap();
            drop(db);
            let db = folder.open(&machine).unwrap();
            assert_eq!(db.community_layer_status(1).unwrap().status, Left);
        }
        operations
    });
    assert!(runs >= 10);
}

#[test]
fn a_leave_that_waits_for_the_disk_is_in_force_and_holds_nobody_up() {
    let folder = Folder::new();
    let (machine, mut model) = furnished(&folder);
    let db = folder.open(&machine).unwrap();
    for operation in [Operation::Write, Operation::Sync] {
        thread::scope(|scope| {
            // In here, so that a failure lets the other thread go on.
            let words = machine.delay(operation);
            let hear = || words.recv_timeout(Duration::from_mins(1)).unwrap();
            let leave = scope.spawn(|| db.leave_community_layer(1));
            hear();
            assert!(model.signal(&db, 1).unwrap(), "the gate is shut");
            assert!(!model.signal(&db, 4).unwrap(), "others go on");
            assert_eq!(db.community_layer_status(2).unwrap().status, Left);
            hear();
            leave.join().unwrap().unwrap();
        });
        model.note_transition(1, Left, Ok(())).unwrap();
        model.call(&db, Call::Rejoin(1)).unwrap();
        assert!(!model.signal(&db, 1).unwrap());
    }
    model.check_settled(&db);
}

/// The store did not take the leave, the journal did not take the rejoin: what the
/// next transition starts from is in neither the gate nor the store's history.
#[test]
fn a_boundary_outlives_a_fault_of_the_store_and_one_of_the_journal() {
    let folder = Folder::new();
    let machine = Machine::default();
    let mut model = Model::default();
    let db = folder.open(&machine).unwrap();
    for _ in 0..2 {
        model.call(&db, Call::Leave(1)).unwrap();
        machine.plan(0, Fault::Before);
        db.flush().unwrap_err();
        assert_eq!(machine.heal()[0], Operation::Apply);
    }
    machine.plan(0, Fault::Before);
    model.call(&db, Call::Rejoin(1)).unwrap_err();
    assert_eq!(machine.heal()[0], Operation::Write);
    model.call(&db, Call::Rejoin(1)).unwrap();
    assert_eq!(check_history(&db, 1), [Left, Left, Active]);
    drop(db);
    assert_eq!(
        check_history(&folder.open(&machine).unwrap(), 1),
        [Left, Left, Active]
    );
}

/// Killed between the write of a block and its sync; the next opening is killed as well,
/// after it put the block into the store; the power fails once a third has opened it. The
/// block had been believed to be on the disk, so its number was missing then, and everybody
/// was shut.
#[test]
fn what_a_killed_process_did_not_sync_is_synced_before_it_is_built_on() {
    let folder = Folder::new();
    let killed = Machine::default();
    {
        let db = folder.open(&killed).unwrap();
        db.leave_community_layer(1).unwrap();
        db.flush().unwrap();
        killed.plan(1, Fault::Gone);
        db.leave_community_layer(2).unwrap_err();
    }
    assert_eq!(killed.heal()[..2], [Operation::Write, Operation::Sync]);
    for at in 0.. {
        let machine = killed.copy();
        machine.plan(at, Fault::Gone);
        drop(folder.open(&machine));
        let operations = machine.heal();
        let machine = machine.copy();
        let db = folder.open(&machine).unwrap();
        let after_power_cut = machine.after_power_cut();
        machine.switch_off();
        drop(db);
        for machine in after_power_cut {
            let db = folder.open(&machine).unwrap();
            assert!(db.verify().unwrap().is_clean(), "killed at {at}");
            assert_eq!(check_history(&db, 1), [Left]);
            assert!([&[][..], &[Left]].contains(&&check_history(&db, 2)[..]));
            assert!(!db.signal_with_context(3, &view(ITEM)).unwrap().gated);
            machine.switch_off();
        }
        if operations.len() <= at {
            assert!(at >= 10, "{operations:?}");
            break;
        }
    }
}

/// `verify` had taken it for a transition that the history lacked.
#[test]
fn what_a_failed_leave_left_in_the_journal_is_no_transition() {
    let folder = Folder::new();
    let machine = Machine::default();
    let db = folder.open(&machine).unwrap();
    db.leave_community_layer(1).unwrap();
    machine.plan(1, Fault::Gone);
    db.leave_community_layer(2).unwrap_err();
    // Neither was it synced nor could it be taken out.
    let operations = machine.heal();
    assert_eq!(operations[1..], [Operation::Sync, Operation::Truncate]);
    assert_eq!(db.verify().unwrap().restored, 0);
    assert_eq!(db.community_layer_history(2).unwrap(), []);
    db.leave_community_layer(3).unwrap();
    drop(db);
    machine.set_file(Path::new("journal"), None);
    let db = folder.open(&machine).unwrap();
    assert!(db.verify().unwrap().is_clean());
    for (user_id, history) in [(1, &[Left][..]), (2, &[]), (3, &[Left])] {
        assert_eq!(check_history(&db, user_id), history);
    }
}

#[test]
fn a_leave_for_which_the_disk_has_room_needs_no_more() {
    let (folder, other_folder) = (Folder::new(), Folder::new());
    let machine = Machine::default();
    let db = folder.open(&machine).unwrap();
    // The first write is the block, and the second the room for more.
    machine.plan(1, Fault::Full);
    db.leave_community_layer(1).unwrap();
    db.leave_community_layer(2).unwrap_err();
    let operations = machine.heal();
    assert_eq!(
        operations[..4],
        [
            Operation::Write,
            Operation::Write,
            Operation::Truncate,
            Operation::Sync
        ]
    );
    db.leave_community_layer(2).unwrap();
    for machine in machine.after_power_cut() {
        let db = other_folder.open(&machine).unwrap();
        for user_id in [1, 2] {
            assert_eq!(check_history(&db, user_id), [Left]);
        }
        machine.switch_off();
    }
}

/// The process that compacted the journal was killed before the new one's name was on the
/// disk; what the next one added was in a file that a power cut took away.
#[test]
fn a_journal_that_took_the_place_of_another_lasts_before_it_is_added_to() {
    let folder = Folder::new();
    let written = Machine::default();
    {
        let db = folder.open(&written).unwrap();
        for user_id in 1..=100 {
            db.leave_community_layer(user_id).unwrap();
        }
    }
    let whole = written.copy();
    whole.plan(usize::MAX, Fault::Before);
    drop(folder.open(&whole).unwrap());
    let operations = whole.heal();
    let renamed = operations
        .iter()
        .position(|operation| *operation == Operation::Rename)
        .unwrap();
    assert_eq!(operations[renamed + 1], Operation::SyncFolder);

    let killed = written.copy();
    killed.plan(renamed + 1, Fault::Gone);
    folder.open(&killed).unwrap_err();
    let machine = killed.copy();
    let db = folder.open(&machine).unwrap();
    db.leave_community_layer(101).unwrap();
    let after_power_cut = machine.after_power_cut();
    machine.switch_off();
    drop(db);
    for machine in after_power_cut {
        let db = folder.open(&machine).unwrap();
        for user_id in 1..=101 {
            assert_eq!(check_history(&db, user_id), [Left], "user {user_id}");
        }
        machine.switch_off();
    }
}
