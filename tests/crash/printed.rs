//! `tidegate leave` killed at the instant it printed its answer.

use std::io::{BufRead as _, BufReader};

use tidegate::{MembershipStatus, TidalDb};

use super::number_of_kills;
use crate::support::program::Program;
use crate::support::signal;

/// 40 kills by default; 200 where `TIDEGATE_KILLS` asks for that many or more.
#[test]
fn a_leave_that_was_printed_survives_a_kill() {
    let program = Program::new();
    let users = (0_u64..).step_by(7919).take(number_of_kills(40).min(200));
    let mut left = Vec::new();
    for user_id in users {
        // The second one is killed while it is about to be made, or just after.
        let ids = [user_id, user_id + 1].map(|id| id.to_string());
        let mut process = program.command(&["leave"]).args(&ids).spawn().unwrap();
        let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = printed.next().unwrap().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(
            line.starts_with(&format!("user {user_id}: left since ")),
            "{line}"
        );
        left.push(user_id);
    }
    let db = TidalDb::open(program.path("store")).unwrap();
    for user_id in left {
        let status = db.community_layer_status(user_id).unwrap();
        assert_eq!(status.status, MembershipStatus::Left);
        assert!(signal(&db, user_id, 1).gated);
        let history = db.community_layer_history(user_id).unwrap();
        assert_eq!(history.len(), 1);
        assert_eq!(Some(history[0].at_ns), status.left_at_ns);
    }
    assert!(db.verify().unwrap().is_clean());
}

#[test]
fn of_many_leaves_those_that_were_printed_survive_a_kill() {
    let program = Program::new();
    let mut users = (0_u64..).step_by(7919);
    for acknowledged in [1, 2, 25] {
        let ids: Vec<u64> = users.by_ref().take(500).collect();
        let mut process = program
            .command(&["leave"])
            .args(ids.iter().map(u64::to_string))
            .spawn()
            .unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(printed.take(acknowledged).flatten().count(), acknowledged);
        process.kill().unwrap();
        process.wait().unwrap();

        let db = TidalDb::open(program.path("store")).unwrap();
        let gated = |ids: &[u64]| ids.iter().filter(|id| signal(&db, **id, 1).gated).count();
        assert_eq!(gated(&ids[..acknowledged]), acknowledged);
        assert!(
            gated(&ids) < ids.len(),
            "the kill came too late to interrupt anything"
        );
        assert!(db.verify().unwrap().is_clean());
    }
}
