//! Table 1: what it costs to ask whether a user's signals may fan out.
//!
//! Asked of 1,000,000 users who left among 10,000,000, which no cache holds, and of 10,000
//! among 100,000, which one does. The probes are users at random who left (hits), or who
//! never did (misses), by a seeded generator. tidegate's own check is
//! [`TidalDb::fan_out`](tidegate::TidalDb::fan_out), fence included.
//!
//! Each is measured in two ways:
//!
//! - throughput: look-ups that do not wait for each other
//! - chain: the key of each look-up depends on the answer of the one before, as in a
//!   request that does something with the answer. The answer of a miss is no data that was
//!   looked up, so the processor goes on with the one that it predicts.
//!
//! | peer | how it is asked |
//! |---|---|
//! | maps | `get`; see [`support::maps`] |
//! | the component | a call of the shipped component's `signal`, with the membership from a `DashMap` |
//! | sled, SQLite | a point read; SQLite from a prepared statement on a table in memory |
//! | cedar | `permit unless principal in Group::"left"`, each user who left an entity |
//! | regorus | `allow if not data.left[input.user]` on its bytecode machine |
//! | Redis | `SISMEMBER` over loopback |

#![allow(clippy::unwrap_used, reason = "a benchmark that fails stops")]

use std::collections::{BTreeMap, HashSet};
use std::hash::RandomState as DefaultHasher;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use foldhash::fast::RandomState as FoldHash;
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;
use support::inputs::{Population, user};
use support::processes::RedisServer;
use support::report::{Curve, Report, Table, number};
use support::rules::{CommunityMembership, Instance, MembershipStatus, engine, load};
use support::stores::Stores;
use support::{
    Contender, growth_sizes, interleave, maps, median, nanoseconds_each, repeats, rounds, rules,
    size,
};
use tidegate::FanOut;

const BASELINE: &str = "DashMap, foldhash";

#[derive(Clone, Copy)]
enum Way {
    Throughput,
    Chain,
}

/// Asks about some users, and returns how many were let through.
type Ask = dyn FnMut(Way, &[u64]) -> u64;

/// Somebody who can be asked.
struct Peer {
    name: &'static str,
    ask: Box<Ask>,
}

fn peer(name: &'static str, mut check: impl FnMut(u64) -> FanOut + 'static) -> Peer {
    let mut ask = move |user| u64::from(check(user).community_forwarding);
    Peer {
        name,
        ask: Box::new(move |way, probes| match way {
            Way::Throughput => probes.iter().map(|user| ask(*user)).sum(),
            Way::Chain => {
                // Zero, but the compiler does not know.
                let nothing = black_box(0);
                let mut answer = 0;
                let mut let_through = 0;
                for user in probes {
                    answer = ask(user ^ (answer & nothing));
                    let_through += answer;
                }
                let_through
            }
        }),
    }
}

fn main() -> Result<()> {
    let stores = Stores::new()?;
    let mut report = Report::new("gate_check");
    for left in [size(10_000, 1_000), size(1_000_000, 10_000)] {
        measure(left, &stores, &mut report)?;
    }
    growth(&stores, &mut report)?;
    report.publish()
}

/// How a check grows with the number of users who left, throughput.
fn growth(stores: &Stores, report: &mut Report) -> Result<()> {
    let mut curves = Vec::new();
    for left in growth_sizes(10_000_000) {
        let db = stores.open_with_left(left)?;
        let mut peers = [
            peer("tidegate", move |user| db.fan_out(user)),
            peer(BASELINE, maps::dash_map::<FoldHash>(left)),
        ];
        for population in Population::ALL {
            let probes = probes(population, left);
            let mut contenders = peers
                .iter_mut()
                .map(|peer| contender(peer, Way::Throughput, &probes, let_through(population)))
                .collect::<Vec<_>>();
            let samples = interleave(&mut contenders, rounds());
            for (contender, samples) in contenders.iter().zip(samples) {
                curves.push(Curve {
                    chart: "Gate check".to_owned(),
                    line: format!("{}, {}", contender.name, population.name()),
                    unit: "ns a check".to_owned(),
                    points: vec![(left, median(&samples))],
                });
            }
        }
    }
    report.curves = Curve::merged(curves);
    Ok(())
}

fn probes(population: Population, left: u64) -> Vec<u64> {
    population.probes(left, left.clamp(1 << 12, 1 << 20), 1)
}

/// How many of each one probe are let through.
fn let_through(population: Population) -> u64 {
    match population {
        Population::Left => 0,
        Population::NeverLeft => 1,
    }
}

fn measure(left: u64, stores: &Stores, report: &mut Report) -> Result<()> {
    let mut peers = peers(left, stores)?;
    match redis(left)? {
        Some(redis) => peers.push(redis),
        None => report
            .notes
            .push("Redis was left out: `redis-server` is not installed.".to_owned()),
    }
    let names = || peers.iter().map(|peer| peer.name.to_owned());
    let title = |way| {
        format!(
            "Gate check, {} users left: {way}, ns a check",
            number_of(left)
        )
    };
    let mut throughput = Table::new(title("throughput"), names());
    let mut chain = Table::new(title("dependent chain"), names());
    for population in Population::ALL {
        for (way, table) in [(Way::Throughput, &mut throughput), (Way::Chain, &mut chain)] {
            let probes = probes(population, left);
            let mut contenders = peers
                .iter_mut()
                .map(|peer| contender(peer, way, &probes, let_through(population)))
                .collect::<Vec<_>>();
            let samples = interleave(&mut contenders, rounds());
            table.column(population.name(), Some(BASELINE), samples);
        }
    }
    report.tables.extend([throughput, chain]);
    Ok(())
}

fn number_of(left: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a round number")]
    let left = left as f64;
    number(left)
}

/// Asks about as many probes as take a twentieth of a second.
fn contender<'a>(
    peer: &'a mut Peer,
    way: Way,
    probes: &'a [u64],
    let_through: u64,
) -> Contender<'a> {
    let enough = Duration::from_millis(size(50, 1));
    let few = &probes[..1_000];
    let thousands = usize::try_from(repeats(enough, || {
        black_box((peer.ask)(way, few));
    }))
    .unwrap();
    let part = &probes[..probes.len().min(thousands * few.len())];
    let passes = (thousands * few.len()).div_ceil(part.len());
    let checks = (passes * part.len()) as u64;
    Contender::new(peer.name, move || {
        let mut answers = 0;
        let nanoseconds = nanoseconds_each(checks, || {
            for _ in 0..passes {
                answers += (peer.ask)(way, black_box(part));
            }
        });
        assert_eq!(answers, checks * let_through, "{}", peer.name);
        nanoseconds
    })
}

fn peers(left: u64, stores: &Stores) -> Result<Vec<Peer>> {
    let db = stores.open_with_left(left)?;
    Ok(vec![
        peer("tidegate, fence included", move |user| db.fan_out(user)),
        peer(BASELINE, maps::dash_map::<FoldHash>(left)),
        peer(
            "DashMap, default hasher",
            maps::dash_map::<DefaultHasher>(left),
        ),
        peer(
            "RwLock<HashMap>, foldhash",
            maps::locked_map::<FoldHash>(left),
        ),
        peer(
            "RwLock<HashMap>, default hasher",
            maps::locked_map::<DefaultHasher>(left),
        ),
        peer("papaya, foldhash", maps::papaya::<FoldHash>(left)),
        peer(
            "HashMap that never changes, foldhash",
            maps::frozen_map::<FoldHash>(left),
        ),
        component(left)?,
        sled(left)?,
        sqlite(left)?,
        cedar(left)?,
        regorus(left)?,
    ])
}

fn component(left: u64) -> Result<Peer> {
    let mut instance = engine(None)
        .and_then(|engine| Instance::new(&engine, &load(&engine)?))
        .map_err(anyhow::Error::msg)?;
    let map: dashmap::DashMap<u64, u64, FoldHash> = maps::entries(left)
        .map(|(user, entry)| (user, entry.left_at_ns))
        .collect();
    Ok(peer("a call of the component", move |user_id| {
        let left_at_ns = map.get(&user_id).map(|left_at_ns| *left_at_ns);
        let membership = CommunityMembership {
            user_id,
            status: match left_at_ns {
                Some(_) => MembershipStatus::Left,
                None => MembershipStatus::Active,
            },
            left_at_ns,
        };
        let answer = instance
            .call(|exports, store| exports.call_signal(store, membership))
            .unwrap();
        fan_out(answer.contains(rules::FanOut::COMMUNITY_FORWARDING))
    }))
}

fn fan_out(open: bool) -> FanOut {
    if open { FanOut::ALL } else { FanOut::NONE }
}

fn sled(left: u64) -> Result<Peer> {
    let db = sled::Config::new()
        .temporary(true)
        .flush_every_ms(None)
        .open()?;
    for (user, entry) in maps::entries(left) {
        db.insert(user.to_be_bytes(), &entry.left_at_ns.to_le_bytes())?;
    }
    Ok(peer("sled", move |user| {
        fan_out(db.get(user.to_be_bytes()).unwrap().is_none())
    }))
}

fn sqlite(left: u64) -> Result<Peer> {
    // The statement borrows it, and both live as long as the process.
    let connection = Box::leak(Box::new(rusqlite::Connection::open_in_memory()?));
    connection.execute_batch(
        "CREATE TABLE memberships (user INTEGER PRIMARY KEY, left_at_ns INTEGER NOT NULL)",
    )?;
    let transaction = connection.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO memberships VALUES (?1, ?2)")?;
    for (user, entry) in maps::entries(left) {
        insert.execute((user.cast_signed(), entry.left_at_ns.cast_signed()))?;
    }
    drop(insert);
    transaction.commit()?;
    let mut select = connection.prepare("SELECT 1 FROM memberships WHERE user = ?1")?;
    Ok(peer("SQLite, in memory", move |user| {
        fan_out(!select.exists([user.cast_signed()]).unwrap())
    }))
}

fn cedar(left: u64) -> Result<Peer> {
    use cedar_policy::{
        Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid,
        PolicySet, Request,
    };

    let policies: PolicySet =
        r#"permit(principal, action, resource) unless { principal in Group::"left" };"#.parse()?;
    let user_type: EntityTypeName = "User".parse()?;
    let uid = move |user: u64| {
        EntityUid::from_type_name_and_id(user_type.clone(), EntityId::new(user.to_string()))
    };
    let group: EntityUid = r#"Group::"left""#.parse()?;
    let users = (0..left)
        .map(|number| Entity::new_no_attrs(uid(user(number)), HashSet::from([group.clone()])));
    let groups = [Entity::new_no_attrs(group.clone(), HashSet::new())];
    let entities = Entities::from_entities(users.chain(groups), None)?;
    let action: EntityUid = r#"Action::"signal""#.parse()?;
    let resource: EntityUid = r#"Layer::"community""#.parse()?;
    let authorizer = Authorizer::new();
    Ok(peer("cedar-policy", move |user| {
        let request = Request::new(
            uid(user),
            action.clone(),
            resource.clone(),
            Context::empty(),
            None,
        )
        .unwrap();
        let response = authorizer.is_authorized(&request, &policies, &entities);
        fan_out(response.decision() == Decision::Allow)
    }))
}

fn regorus(left: u64) -> Result<Peer> {
    use regorus::Value;

    const RULE: &str = "data.gate.allow";
    let policy =
        "package gate\nimport rego.v1\ndefault allow := false\nallow if not data.left[input.user]";
    let users: BTreeMap<Value, Value> = (0..left)
        .map(|number| (Value::from(user(number)), Value::from(true)))
        .collect();
    let data = Value::from(BTreeMap::from([(Value::from("left"), Value::from(users))]));
    let mut engine = regorus::Engine::new();
    engine.add_policy("gate.rego".to_owned(), policy.to_owned())?;
    let compiled = engine.compile_with_entrypoint(&Arc::from(RULE))?;
    let mut machine = RegoVM::new();
    machine.load_program(Compiler::compile_from_policy(&compiled, &[RULE])?);
    machine.set_data(data)?;
    let name = Value::from("user");
    Ok(peer("regorus", move |user| {
        machine.set_input(Value::from(BTreeMap::from([(
            name.clone(),
            Value::from(user),
        )])));
        fan_out(machine.execute().unwrap() == Value::from(true))
    }))
}

fn redis(left: u64) -> Result<Option<Peer>> {
    const SET: &str = "left";
    let Some(server) = RedisServer::start()? else {
        return Ok(None);
    };
    let mut connection = redis::Client::open(server.url())?.get_connection()?;
    let users: Vec<u64> = (0..left).map(user).collect();
    let mut added = 0;
    for users in users.chunks(10_000) {
        added += redis::cmd("SADD")
            .arg(SET)
            .arg(users)
            .query::<u64>(&mut connection)?;
    }
    ensure!(added == left);
    Ok(Some(peer("Redis, SISMEMBER over loopback", move |user| {
        // Moved in so that the server lives as long.
        let _server = &server;
        let mut command = redis::cmd("SISMEMBER");
        let is_member: bool = command.arg(SET).arg(user).query(&mut connection).unwrap();
        fan_out(!is_member)
    })))
}
