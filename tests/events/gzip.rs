//! Inputs packed with gzip are read as they are.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{row, rows};
use crate::support::program::Program;

/// One line, packed by another program: item 7, a `like` of 2.5.
const PACKED_LINE: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0x2a, 0x2d, 0x4e, 0x2d,
    0x8a, 0xcf, 0x4c, 0x51, 0xb2, 0x52, 0x30, 0xd4, 0x51, 0x50, 0xca, 0x2c, 0x49, 0xcd, 0x85, 0xf0,
    0xcc, 0x81, 0xbc, 0xec, 0xcc, 0x3c, 0x10, 0x53, 0x29, 0x27, 0x33, 0x3b, 0x55, 0x09, 0xc8, 0x2f,
    0x4f, 0xcd, 0x4c, 0xcf, 0x28, 0x01, 0x8a, 0x18, 0xe9, 0x99, 0xd6, 0x72, 0x01, 0x00, 0x11, 0xb7,
    0x4d, 0x16, 0x3c, 0x00, 0x00, 0x00,
];

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_packed_file_has_the_format_before_its_extension() {
    let program = Program::new();
    program.write("events.jsonl.gz", PACKED_LINE);
    program.write(
        "events.csv.gz",
        packed("user_id,item_id,kind,weight\n1,8,like,1\n"),
    );
    program.text(&["ingest", "events.jsonl.gz", "events.csv.gz"]);
    assert_eq!(
        rows(&program, &[]),
        [row(7, "like", 1, 2.5), row(8, "like", 1, 1.0)]
    );
}

#[test]
fn what_is_packed_in_parts_or_comes_from_standard_input_is_read_to_its_end() {
    let program = Program::new();
    let parts = [PACKED_LINE, PACKED_LINE].concat();
    program.run_with_input(&["ingest", "-"], &parts).success();
    program.write("named-like-text.jsonl", &parts);
    program.text(&["ingest", "named-like-text.jsonl"]);
    assert_eq!(rows(&program, &[]), [row(7, "like", 4, 10.0)]);
}

#[test]
fn a_packed_file_that_is_cut_or_damaged_is_an_error_after_what_came_before() {
    let lines = r#"{"user_id": 1, "item_id": 7, "kind": "like"}"#.to_owned() + "\n";
    let whole = packed(&lines.repeat(1000));
    let mut damaged = whole.clone();
    let checksum = whole.len() - 8;
    damaged[checksum] ^= 0xFF;
    for bytes in [&whole[..whole.len() - 20], &damaged] {
        let program = Program::new();
        program.write("events.jsonl.gz", bytes);
        program
            .run(&["ingest", "events.jsonl.gz", "--on-error", "skip"])
            .fails_saying(&["events.jsonl.gz"]);
        program.write("whole.jsonl.gz", &whole);
        program.text(&["ingest", "whole.jsonl.gz"]);
        let signals = program.json(&["stats"])["signals"].as_u64().unwrap();
        assert!((1001..=2000).contains(&signals), "{signals}");
    }
}
