//! The program `tidegate`, run as a process on a store of its own.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A store in a temporary folder, and the program to use it with.
pub(crate) struct Tidegate {
    folder: TempDir,
}

impl Tidegate {
    pub(crate) fn new() -> Self {
        Tidegate {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Writes a file beside the store; returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program on this store.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .env_remove("TIDEGATE_STORE")
            .arg("--store")
            .arg(self.store())
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> Output {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut stdin = process.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // The program may end before it has read everything.
            scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
            process.wait_with_output().unwrap()
        })
    }

    /// What a command that succeeds prints.
    pub(crate) fn text(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> String {
        let output = self.run(arguments, input);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one JSON object that a command prints.
    pub(crate) fn json(&self, arguments: &[impl AsRef<OsStr>]) -> Value {
        self.json_with_input(arguments, "")
    }

    pub(crate) fn json_with_input(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> Value {
        serde_json::from_str(&self.text(&with_json(arguments), input)).unwrap()
    }

    /// How many lines of JSON a command prints.
    pub(crate) fn lines_with_input(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> usize {
        let text = self.text(&with_json(arguments), input);
        let lines = text.lines().map(serde_json::from_str::<Value>);
        lines.map(Result::unwrap).count()
    }
}

fn with_json(arguments: &[impl AsRef<OsStr>]) -> Vec<&OsStr> {
    let arguments = arguments.iter().map(AsRef::as_ref);
    std::iter::once(OsStr::new("--json"))
        .chain(arguments)
        .collect()
}
