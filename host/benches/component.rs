//! Table 8: what the shipped component costs, on wasmtime with the settings of the host:
//! each export, bulk restore for each record, and what comes before the first call.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails stops")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use support::inputs::user;
use support::processes::temporary_folder;
use support::report::{Report, Table, number};
use support::rules::{
    CommunityMembership, FanOut, Instance, MembershipStatus, RESTORE_BATCH, engine, load,
};
use support::{Contender, interleave, nanoseconds_each, repeats, rounds, size};

/// The record of a user who left at instant 1.
const RECORD: [u8; 9] = [1, 1, 0, 0, 0, 0, 0, 0, 0];

fn main() -> Result<()> {
    let mut report = Report::new("component");
    report.tables.push(calls()?);
    report.tables.push(preparation()?);
    #[expect(clippy::cast_precision_loss, reason = "a size below 32 KiB")]
    let bytes = tidegate::SHIPPED_COMPONENT.len() as f64;
    report
        .notes
        .push(format!("The component has {} bytes.", number(bytes)));
    report.publish()
}

fn left(user_id: u64) -> CommunityMembership {
    CommunityMembership {
        user_id,
        status: MembershipStatus::Left,
        left_at_ns: Some(1),
    }
}

fn active(user_id: u64) -> CommunityMembership {
    CommunityMembership {
        user_id,
        status: MembershipStatus::Active,
        left_at_ns: None,
    }
}

/// Measures a call of one export, which returns whether it did what it should.
fn call<'a>(
    name: &str,
    each: u64,
    mut call: impl FnMut(&mut Instance, u64) -> bool + 'a,
) -> Result<Contender<'a>> {
    let mut instance = engine(None)
        .and_then(|engine| Instance::new(&engine, &load(&engine)?))
        .map_err(anyhow::Error::msg)?;
    let enough = Duration::from_millis(size(50, 1));
    let calls = u64::from(repeats(enough, || {
        black_box(call(&mut instance, user(0)));
    }));
    Ok(Contender::new(name, move || {
        let mut done = 0;
        let nanoseconds = nanoseconds_each(calls * each, || {
            for number in 0..calls {
                done += u64::from(call(&mut instance, black_box(user(number))));
            }
        });
        assert_eq!(done, calls);
        nanoseconds
    }))
}

fn calls() -> Result<Table> {
    let users: Vec<u64> = (0..RESTORE_BATCH).map(user).collect();
    let lengths = vec![9; users.len()];
    let bytes = RECORD.repeat(users.len());
    let mut contenders = [
        call("`leave`", 1, |instance, user| {
            let next = instance.call(|exports, store| exports.call_leave(store, active(user), 1));
            next.unwrap().left_at_ns == Some(1)
        })?,
        call("`rejoin`", 1, |instance, user| {
            let next = instance.call(|exports, store| exports.call_rejoin(store, left(user)));
            next.unwrap().status == MembershipStatus::Active
        })?,
        call("`status`", 1, |instance, user| {
            let found =
                instance.call(|exports, store| exports.call_status(store, user, Some(&RECORD)));
            found.unwrap().is_ok_and(|found| found.user_id == user)
        })?,
        call("`signal`", 1, |instance, user| {
            let fan_out = instance.call(|exports, store| exports.call_signal(store, left(user)));
            fan_out.unwrap() == FanOut::empty()
        })?,
        call("`serialize-membership`", 1, |instance, user| {
            let record = instance
                .call(|exports, store| exports.call_serialize_membership(store, left(user)));
            record.unwrap() == RECORD
        })?,
        call("`deserialize-membership`", 1, |instance, user| {
            let found = instance
                .call(|exports, store| exports.call_deserialize_membership(store, user, &RECORD));
            found.unwrap().is_some_and(|found| found.user_id == user)
        })?,
        call(
            "`restore`, for each of 4,096 records",
            RESTORE_BATCH,
            |instance, _| {
                let restored = instance
                    .call(|exports, store| exports.call_restore(store, &users, &lengths, &bytes));
                restored.unwrap().iter().flatten().count() == users.len()
            },
        )?,
    ];
    let samples = interleave(&mut contenders, rounds());
    let mut table = Table::new(
        "A call of the component",
        contenders.iter().map(|contender| contender.name.clone()),
    );
    table.column("ns", None, samples);
    Ok(table)
}

fn preparation() -> Result<Table> {
    let cache = temporary_folder()?;
    let warm = engine(Some(cache.path())).map_err(anyhow::Error::msg)?;
    let prepared = load(&warm).map_err(anyhow::Error::msg)?;
    let milliseconds = |started: Instant| started.elapsed().as_secs_f64() * 1e3;
    let mut contenders = [
        Contender::new("compile", || {
            let engine = engine(None).unwrap();
            let started = Instant::now();
            black_box(load(&engine).unwrap());
            milliseconds(started)
        }),
        Contender::new("load, compiled before and in the cache", || {
            let started = Instant::now();
            black_box(load(&warm).unwrap());
            milliseconds(started)
        }),
        Contender::new("instantiate", || {
            let started = Instant::now();
            black_box(Instance::new(&warm, &prepared).unwrap());
            milliseconds(started)
        }),
    ];
    let samples = interleave(&mut contenders, rounds());
    let mut table = Table::new(
        "Before the first call of the component",
        contenders.iter().map(|contender| contender.name.clone()),
    );
    table.column("ms", None, samples);
    Ok(table)
}
