//! The process is killed, and what it had acknowledged is there.

use std::io::{BufRead as _, BufReader};

use tidegate::{MembershipStatus, TidalDb};

use crate::support::program::Program;
use crate::support::signal;

#[test]
fn a_leave_that_was_printed_survives_a_kill() {
    let program = Program::new();
    let mut users = (0_u64..).step_by(7919);
    for acknowledged in [1, 2, 25] {
        let ids: Vec<String> = users.by_ref().take(500).map(|id| id.to_string()).collect();
        let mut process = program.command(&["leave"]).args(&ids).spawn().unwrap();
        let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
        for id in &ids[..acknowledged] {
            let line = printed.next().unwrap().unwrap();
            assert!(
                line.starts_with(&format!("user {id}: left since ")),
                "{line}"
            );
        }
        // SIGKILL: nothing is closed, flushed or dropped.
        process.kill().unwrap();
        process.wait().unwrap();

        let db = TidalDb::open(program.path("store")).unwrap();
        for id in &ids[..acknowledged] {
            let user_id = id.parse().unwrap();
            let status = db.community_layer_status(user_id).unwrap();
            assert_eq!(status.status, MembershipStatus::Left);
            assert!(signal(&db, user_id, 1).gated);
            let history = db.community_layer_history(user_id).unwrap();
            assert_eq!(history.len(), 1);
            assert_eq!(Some(history[0].at_ns), status.left_at_ns);
        }
        let gated = ids
            .iter()
            .filter(|id| signal(&db, id.parse().unwrap(), 1).gated)
            .count();
        assert!(
            gated < ids.len(),
            "the kill came too late to interrupt anything"
        );
        assert!(db.verify().unwrap().is_clean());
    }
}
