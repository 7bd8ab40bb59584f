//! The command-line tool as a process, in a folder of its own.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tidegate::TidalDb;
use tidegate::storage::sled::SledEngine;
use tidegate::storage::{Partition, StorageEngine as _};

/// The program, run in a temporary folder with its store in `store` there.
pub(crate) struct Program {
    folder: TempDir,
}

/// What a run of the program left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        Program {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The program with a store in which nothing happened yet.
    pub(crate) fn with_store() -> Self {
        let program = Program::new();
        drop(TidalDb::open(program.path("store")).unwrap());
        program
    }

    /// The path of a file in the folder in which the program runs.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(file), content).unwrap();
    }

    /// Puts membership records into the store behind its back.
    pub(crate) fn put_records(&self, records: &[(&[u8], &[u8])]) {
        let engine = SledEngine::open(&self.path("store/sled")).unwrap();
        for (key, record) in records {
            engine.put(Partition::Memberships, key, record).unwrap();
        }
        engine.flush().unwrap();
    }

    /// The program, ready to start, with nothing to read. Backtraces are asked for, so
    /// that one that is printed is seen.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TIDEGATE_STORE", "store")
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        self.write("standard input", input);
        let input = File::open(self.path("standard input")).unwrap();
        Run::of(self.command(arguments).stdin(input))
    }

    /// What the program prints when it succeeds.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        self.run(arguments).success()
    }

    /// The one JSON object that the program prints when it succeeds.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [&["--json"], arguments].concat();
        self.run(&arguments).object()
    }
}

impl Run {
    /// Starts a program and waits until it ends.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Run {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The standard output of a run that succeeded and complained of nothing.
    pub(crate) fn success(self) -> String {
        assert_eq!(
            (self.status, self.stderr.as_str()),
            (Some(0), ""),
            "{}",
            self.stdout
        );
        self.stdout
    }

    /// The one JSON object that a run printed that succeeded.
    pub(crate) fn object(self) -> Value {
        let stdout = self.success();
        assert_eq!(stdout.lines().count(), 1, "{stdout}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Checks that the run failed with exit status 1 and one line on standard error
    /// that says all of `parts`, and that nothing was printed.
    pub(crate) fn fails_saying(self, parts: &[&str]) {
        assert_eq!(
            (self.status, self.stdout.as_str()),
            (Some(1), ""),
            "{}",
            self.stderr
        );
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "`{part}` is not in: {}",
                self.stderr
            );
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Checks that the program refused its command line.
    pub(crate) fn refuses_its_usage(self) {
        assert_eq!(
            (self.status, self.stdout.as_str()),
            (Some(2), ""),
            "{}",
            self.stderr
        );
        assert!(!self.stderr.is_empty());
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}
