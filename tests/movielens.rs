//! MovieLens 100k through the CLI, with cohorts, communities, leaves and rejoins,
//! every aggregate compared with one that plain loops compute here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::program::{Program, Run};
use crate::support::skip;

const HOW_TO_RUN: &str = "pip download --no-deps recbole==1.2.1, unzip the wheel, and set \
    TIDEGATE_MOVIELENS to its folder recbole/dataset_example/ml-100k";

struct Rating {
    user: u64,
    item: u64,
    stars: u64,
    line: String,
}

struct User {
    age: u64,
    occupation: String,
}

struct MovieLens {
    folder: PathBuf,
    header: String,
    ratings: Vec<Rating>,
    users: BTreeMap<u64, User>,
}

fn movielens() -> Option<MovieLens> {
    let Some(folder) = std::env::var_os("TIDEGATE_MOVIELENS") else {
        skip("the data set MovieLens 100k is not here", HOW_TO_RUN);
        return None;
    };
    let folder = PathBuf::from(folder);
    let inter = fs::read_to_string(folder.join("ml-100k.inter")).unwrap();
    let user = fs::read_to_string(folder.join("ml-100k.user")).unwrap();
    let (header, lines) = inter.split_once('\n').unwrap();
    let ratings = lines
        .lines()
        .map(|line| {
            let fields: Vec<u64> = line
                .split('\t')
                .map(|field| field.parse().unwrap())
                .collect();
            Rating {
                user: fields[0],
                item: fields[1],
                stars: fields[2],
                line: line.to_owned(),
            }
        })
        .collect();
    let users = user
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let user = User {
                age: fields[1].parse().unwrap(),
                occupation: fields[3].to_owned(),
            };
            (fields[0].parse().unwrap(), user)
        })
        .collect();
    Some(MovieLens {
        folder,
        header: header.to_owned(),
        ratings,
        users,
    })
}

/// Count and stars by item, for each scope as `top` names it.
type Expected = BTreeMap<String, BTreeMap<u64, (u64, u64)>>;

/// What the scopes hold when, in the middle, the users in `leavers` leave before
/// the rating `leave_at` and those of them in `returners` rejoin before `rejoin_at`.
fn expected(
    data: &MovieLens,
    (leave_at, leavers): (usize, &BTreeSet<u64>),
    (rejoin_at, returners): (usize, &BTreeSet<u64>),
) -> (Expected, u64) {
    let mut expected = Expected::new();
    let mut gated = 0;
    for (index, rating) in data.ratings.iter().enumerate() {
        let user = &data.users[&rating.user];
        let away = leavers.contains(&rating.user)
            && index >= leave_at
            && !(returners.contains(&rating.user) && index >= rejoin_at);
        let mut scopes = vec!["base".to_owned()];
        if away {
            gated += 1;
        } else {
            if user.age < 25 {
                scopes.push("cohort:young".to_owned());
            }
            if user.occupation == "student" {
                scopes.push("cohort:students".to_owned());
            }
            scopes.push(format!("community:{}", user.occupation));
        }
        for scope in scopes {
            let sums = expected.entry(scope).or_default();
            let sum = sums.entry(rating.item).or_default();
            sum.0 += 1;
            sum.1 += rating.stars;
        }
    }
    (expected, gated)
}

fn check_scopes(program: &Program, expected: &Expected) {
    for (scope, sums) in expected {
        let mut arguments = vec!["top", "--limit", "100000"];
        let option;
        if let Some((what, name)) = scope.split_once(':') {
            option = format!("--{what}");
            arguments.extend([option.as_str(), name]);
        }
        let top = program.json(&arguments);
        assert_eq!(top["scope"], json!(scope));
        let mut order = Vec::new();
        let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for row in top["rows"].as_array().unwrap() {
            assert_eq!(row["kind"], "rating");
            let weight = row["weight"].as_f64().unwrap();
            let item = row["item_id"].as_u64().unwrap();
            // Stars are whole and few: the sum prints as one without a fraction.
            let stars: u64 = format!("{weight:.0}").parse().unwrap();
            assert_eq!(weight.to_string(), stars.to_string());
            found.insert(item, (row["count"].as_u64().unwrap(), stars));
            order.push((u64::MAX - stars, item));
        }
        assert_eq!(&found, sums, "{scope}");
        assert!(order.is_sorted(), "{scope}: by weight, then by item");
    }
}

fn every_third(users: &BTreeMap<u64, User>) -> BTreeSet<u64> {
    users.keys().copied().filter(|user| user % 3 == 0).collect()
}

fn every_sixth(users: &BTreeMap<u64, User>) -> BTreeSet<u64> {
    users.keys().copied().filter(|user| user % 6 == 0).collect()
}

fn ids(users: &BTreeSet<u64>) -> String {
    let ids: Vec<String> = users.iter().map(u64::to_string).collect();
    ids.join("\n")
}

fn joins(users: &BTreeMap<u64, User>) -> String {
    let join = |(user_id, user): (&u64, &User)| {
        json!({"type": "join", "user_id": user_id, "community": user.occupation}).to_string()
    };
    let lines: Vec<String> = users.iter().map(join).collect();
    lines.join("\n")
}

fn line_count(run: Run) -> usize {
    run.success().lines().count()
}

fn set_up(program: &Program, data: &MovieLens) {
    let users = data.folder.join("ml-100k.user");
    let profiles = program.json(&["profiles", users.to_str().unwrap()]);
    assert_eq!(profiles["profiles"], 943);
    program.json(&["cohort", "define", "young", "int(age) < 25"]);
    program.json(&["cohort", "define", "students", "occupation == \"student\""]);
    program
        .run_with_input(&["ingest", "-"], joins(&data.users))
        .success();
}

#[test]
fn the_whole_data_set_goes_in_as_it_is() {
    let Some(data) = movielens() else { return };
    let program = Program::new();
    let inter = data.folder.join("ml-100k.inter");
    let summary = program.json(&["ingest", inter.to_str().unwrap(), "--kind", "rating"]);
    assert_eq!(summary["signals"], 100_000);
    assert_eq!(summary["rejected"], 0);

    let top = program.json(&["top", "--limit", "100000"]);
    let rows = top["rows"].as_array().unwrap();
    let count: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    let weight: f64 = rows.iter().map(|row| row["weight"].as_f64().unwrap()).sum();
    assert_eq!((rows.len(), count), (1_682, 100_000));
    assert!((weight - 352_986.0).abs() < 1e-6);
}

#[test]
fn commands_between_files_gate_what_comes_after_them() {
    let Some(data) = movielens() else { return };
    let program = Program::new();
    set_up(&program, &data);
    let (leavers, returners) = (every_third(&data.users), every_sixth(&data.users));
    let cuts = [0, 30_000, 70_000, data.ratings.len()];
    let (expected, gated) = expected(&data, (cuts[1], &leavers), (cuts[2], &returners));

    let mut summaries = Vec::new();
    for part in 0..3 {
        let lines = data.ratings[cuts[part]..cuts[part + 1]].iter();
        let mut text = format!("{}\n", data.header);
        text.extend(lines.map(|rating| format!("{}\n", rating.line)));
        let file = format!("part{part}.inter");
        program.write(&file, &text);
        summaries.push(program.json(&["ingest", &file, "--kind", "rating"]));
        match part {
            0 => assert_eq!(
                line_count(program.run_with_input(&["leave", "--from", "-"], ids(&leavers))),
                leavers.len()
            ),
            1 => assert_eq!(
                line_count(program.run_with_input(&["rejoin", "--from", "-"], ids(&returners))),
                returners.len()
            ),
            _ => {}
        }
    }
    check_scopes(&program, &expected);
    let sum = |name: &str| -> u64 {
        summaries
            .iter()
            .map(|part| part[name].as_u64().unwrap())
            .sum()
    };
    assert_eq!(sum("gated_cohort_attribution"), gated);
    assert_eq!(sum("gated_community_forwarding"), gated);
    check_stats(&program, &expected, gated, (leavers.len(), returners.len()));
}

#[test]
fn events_in_one_stream_gate_what_comes_after_them() {
    let Some(data) = movielens() else { return };
    let program = Program::new();
    set_up(&program, &data);
    let (leavers, returners) = (every_third(&data.users), every_sixth(&data.users));
    let (leave_at, rejoin_at) = (41_234, 77_777);
    let (expected, gated) = expected(&data, (leave_at, &leavers), (rejoin_at, &returners));

    let mut stream = String::new();
    for (index, rating) in data.ratings.iter().enumerate() {
        let mut all = |event: &str, users: &BTreeSet<u64>| {
            for user in users {
                writeln!(stream, r#"{{"type":"{event}","user_id":"{user}"}}"#).unwrap();
            }
        };
        if index == leave_at {
            all("leave", &leavers);
        }
        if index == rejoin_at {
            all("rejoin", &returners);
        }
        writeln!(
            stream,
            r#"{{"user_id":{},"item_id":{},"kind":"rating","weight":{}}}"#,
            rating.user, rating.item, rating.stars
        )
        .unwrap();
    }
    let ingest = ["--json", "ingest", "-", "--format", "jsonl"];
    let summary = program.run_with_input(&ingest, stream).object();
    assert_eq!(summary["signals"], 100_000);
    assert_eq!(summary["leaves"], leavers.len());
    assert_eq!(summary["rejoins"], returners.len());
    check_scopes(&program, &expected);
    check_stats(&program, &expected, gated, (leavers.len(), returners.len()));
}

fn check_stats(
    program: &Program,
    expected: &Expected,
    gated: u64,
    (leaves, rejoins): (usize, usize),
) {
    let contributions = |prefix: &str| -> u64 {
        let scopes = expected
            .iter()
            .filter(|(scope, _)| scope.starts_with(prefix));
        scopes
            .flat_map(|(_, sums)| sums.values())
            .map(|sum| sum.0)
            .sum()
    };
    let stats: Value = program.json(&["stats"]);
    assert_eq!(
        stats,
        json!({
            "signals": 100_000,
            "leaves": leaves,
            "rejoins": rejoins,
            "rejected": 0,
            "cohort_contributions": contributions("cohort:"),
            "community_contributions": contributions("community:"),
            "gated_cohort_attribution": gated,
            "gated_community_forwarding": gated,
            "left_users": leaves - rejoins,
            "malformed_records": 0,
        })
    );
}
