//! The gate's protocol as a model, every interleaving checked: one user, two threads
//! that signal, three callers that leave, rejoin and leave, writes that fail, and a
//! crash at any moment.
//!
//! The feature was first specified with a leave that persists and then inserts, and a
//! check of the gate before the fan-out without a fence. The same checker, run on that
//! order and on each other part taken out, must find the violation: this is how we know
//! that it can.

use stateright::{Checker as _, Model, Property};

/// What is shipped, or what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Design {
    Shipped,
    /// A signal asks the gate and forwards later; a leave does not wait for it.
    WithoutFence,
    /// A leave persists, then shuts the gate.
    PersistsBeforeShutting,
    /// A leave reads the clock, then shuts the gate.
    ReadsClockBeforeShutting,
    /// A rejoin opens the gate, then persists.
    OpensBeforePersisting,
    /// Transitions of one user run at once.
    WithoutTurns,
    /// A leave that can't be made durable opens the gate again.
    OpensAfterFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Signal {
    Outside {
        left: u8,
    },
    Inside {
        left: u8,
        open: bool,
        stamp: Option<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Leave,
    Rejoin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Waiting,
    /// How many of the steps of its order are done, and the clock reading once taken.
    Running {
        done: usize,
        at: u8,
    },
    Returned,
}

/// One step of a transition's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Shut,
    ReadClock,
    Persist,
    Open,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct State {
    clock: u8,
    gate_open: bool,
    /// What a restart finds: whether the user has left.
    disk_left: bool,
    signals: [Signal; 2],
    callers: [(Kind, Step); 3],
    /// The boundary of the last leave that returned, until a rejoin begins.
    promised: Option<u8>,
    /// The highest stamp of a contribution.
    highest_stamp: u8,
    /// A contribution was made under a promise that there is none.
    broken_promise: bool,
    crashed: bool,
    failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Enter(usize),
    Stamp(usize),
    Forward(usize),
    Begin(usize),
    Advance(usize),
    /// The write fails; whether it is on disk all the same.
    Fail(usize, bool),
    Crash,
}

struct Gate(Design);

impl Gate {
    fn order(&self, kind: Kind) -> &'static [Effect] {
        use Effect::{Open, Persist, ReadClock, Shut};
        match (kind, self.0) {
            (Kind::Leave, Design::PersistsBeforeShutting) => &[ReadClock, Persist, Shut],
            (Kind::Leave, Design::ReadsClockBeforeShutting) => &[ReadClock, Shut, Persist],
            (Kind::Leave, _) => &[Shut, ReadClock, Persist],
            (Kind::Rejoin, Design::OpensBeforePersisting) => &[ReadClock, Open, Persist],
            (Kind::Rejoin, _) => &[ReadClock, Persist, Open],
        }
    }

    fn next_effect(&self, state: &State, caller: usize) -> Option<Effect> {
        let (kind, step) = state.callers[caller];
        match step {
            Step::Running { done, .. } => self.order(kind).get(done).copied(),
            _ => None,
        }
    }

    fn advance(&self, state: &mut State, caller: usize) {
        let Some(effect) = self.next_effect(state, caller) else {
            return;
        };
        let (kind, Step::Running { done, mut at }) = state.callers[caller] else {
            return;
        };
        match effect {
            Effect::Shut => state.gate_open = false,
            Effect::Open => state.gate_open = true,
            Effect::Persist => state.disk_left = kind == Kind::Leave,
            Effect::ReadClock => {
                state.clock += 1;
                at = state.clock;
            }
        }
        let is_last = done + 1 == self.order(kind).len();
        state.callers[caller].1 = if is_last {
            if kind == Kind::Leave {
                state.promised = Some(at);
            }
            Step::Returned
        } else {
            Step::Running { done: done + 1, at }
        };
    }
}

impl State {
    fn is_anybody_inside(&self) -> bool {
        let is_inside = |signal: &Signal| matches!(signal, Signal::Inside { .. });
        self.signals.iter().any(is_inside)
    }

    fn is_transition_under_way(&self) -> bool {
        let is_running = |(_, step): &(Kind, Step)| matches!(step, Step::Running { .. });
        self.callers.iter().any(is_running)
    }
}

impl Model for Gate {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            clock: 0,
            gate_open: true,
            disk_left: false,
            signals: [Signal::Outside { left: 2 }, Signal::Outside { left: 1 }],
            callers: [Kind::Leave, Kind::Rejoin, Kind::Leave].map(|kind| (kind, Step::Waiting)),
            promised: None,
            highest_stamp: 0,
            broken_promise: false,
            crashed: false,
            failed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (thread, signal) in state.signals.iter().enumerate() {
            match signal {
                Signal::Outside { left: 0 } => {}
                Signal::Outside { .. } => actions.push(Action::Enter(thread)),
                Signal::Inside { stamp: None, .. } => actions.push(Action::Stamp(thread)),
                Signal::Inside { .. } => actions.push(Action::Forward(thread)),
            }
        }
        for (caller, (_, step)) in state.callers.iter().enumerate() {
            let turn_is_free = self.0 == Design::WithoutTurns || !state.is_transition_under_way();
            if *step == Step::Waiting && turn_is_free {
                actions.push(Action::Begin(caller));
            }
            let fenced = self.0 != Design::WithoutFence && state.is_anybody_inside();
            match self.next_effect(state, caller) {
                // The shard is closed: nobody is inside.
                Some(Effect::Shut | Effect::Open) if fenced => {}
                Some(Effect::Persist) => {
                    actions.push(Action::Advance(caller));
                    if !state.failed {
                        actions.push(Action::Fail(caller, false));
                        actions.push(Action::Fail(caller, true));
                    }
                }
                Some(_) => actions.push(Action::Advance(caller)),
                None => {}
            }
        }
        if !state.crashed {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Enter(thread) => {
                let Signal::Outside { left } = state.signals[thread] else {
                    return None;
                };
                state.signals[thread] = Signal::Inside {
                    left: left - 1,
                    open: state.gate_open,
                    stamp: None,
                };
            }
            Action::Stamp(thread) => {
                state.clock += 1;
                if let Signal::Inside { stamp, .. } = &mut state.signals[thread] {
                    *stamp = Some(state.clock);
                }
            }
            Action::Forward(thread) => {
                let Signal::Inside { left, open, stamp } = state.signals[thread] else {
                    return None;
                };
                if open {
                    state.highest_stamp = state.highest_stamp.max(stamp?);
                    state.broken_promise |= state.promised.is_some();
                }
                state.signals[thread] = Signal::Outside { left };
            }
            Action::Begin(caller) => {
                let (kind, step) = &mut state.callers[caller];
                *step = Step::Running { done: 0, at: 0 };
                if *kind == Kind::Rejoin {
                    state.promised = None;
                }
            }
            Action::Advance(caller) => self.advance(&mut state, caller),
            Action::Fail(caller, written) => {
                let kind = state.callers[caller].0;
                if written {
                    state.disk_left = kind == Kind::Leave;
                }
                // Not known which, so shut.
                state.gate_open = self.0 == Design::OpensAfterFailure && kind == Kind::Leave;
                state.callers[caller].1 = Step::Returned;
                state.failed = true;
            }
            Action::Crash => {
                state.crashed = true;
                state.gate_open = !state.disk_left;
                for signal in &mut state.signals {
                    if let Signal::Inside { left, .. } = *signal {
                        *signal = Signal::Outside { left };
                    }
                }
                for (_, step) in &mut state.callers {
                    if matches!(step, Step::Running { .. }) {
                        *step = Step::Returned;
                    }
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1: stop means stop", |_, state: &State| {
                !(state.broken_promise || state.promised.is_some() && state.gate_open)
            }),
            Property::always("I2: the boundary is exact", |_, state: &State| {
                state
                    .promised
                    .is_none_or(|left_at| state.highest_stamp < left_at)
            }),
            Property::always("I3: never more open than the disk", |_, state: &State| {
                !(state.gate_open && state.disk_left)
            }),
            Property::always("I4: memory and disk agree", |_, state: &State| {
                state.is_transition_under_way()
                    || state.failed
                    || state.gate_open != state.disk_left
            }),
            Property::sometimes(
                "a signal is forwarded after a rejoin",
                |_, state: &State| {
                    let rejoined = state.callers[1].1 == Step::Returned && state.gate_open;
                    rejoined && state.highest_stamp == state.clock && state.clock > 3
                },
            ),
            Property::sometimes("a leave outlives a crash", |_, state: &State| {
                state.crashed && state.promised.is_some()
            }),
        ]
    }
}

/// The invariants for which a counterexample is found.
fn violations(design: Design) -> Vec<&'static str> {
    let checker = Gate(design).checker().threads(2).spawn_bfs().join();
    let found = checker.discoveries().into_keys();
    found.filter(|name| name.starts_with('I')).collect()
}

#[test]
fn the_shipped_protocol_holds_in_every_interleaving() {
    let checker = Gate(Design::Shipped)
        .checker()
        .threads(2)
        .spawn_bfs()
        .join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn the_checker_finds_what_the_specified_order_allows() {
    assert!(violations(Design::WithoutFence).contains(&"I1: stop means stop"));
    let late = violations(Design::PersistsBeforeShutting);
    assert!(
        late.contains(&"I3: never more open than the disk"),
        "{late:?}"
    );
}

#[test]
fn the_checker_finds_each_other_part_that_is_taken_out() {
    for (design, property) in [
        (
            Design::ReadsClockBeforeShutting,
            "I2: the boundary is exact",
        ),
        (
            Design::OpensBeforePersisting,
            "I3: never more open than the disk",
        ),
        (Design::WithoutTurns, "I4: memory and disk agree"),
        (
            Design::OpensAfterFailure,
            "I3: never more open than the disk",
        ),
    ] {
        let violated = violations(design);
        assert!(violated.contains(&property), "{design:?}: {violated:?}");
    }
}
