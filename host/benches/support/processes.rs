//! Programs that are measured or needed: tidegate's own, and a Redis server on loopback.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

/// Cargo's folder of what it builds, in which this program lies at `release/deps/`.
pub fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().nth(3);
    Ok(folder
        .context("this program lies in no folder of Cargo's")?
        .to_owned())
}

/// An empty folder on the disk that Cargo builds on: a system's folder of temporary files
/// may lie in memory, where syncing costs nothing.
pub fn temporary_folder() -> Result<TempDir> {
    let parent = target_folder()?.join("tmp");
    fs::create_dir_all(&parent)?;
    Ok(tempfile::tempdir_in(parent)?)
}

/// The program `tidegate` as released, built if it is not.
pub fn tidegate() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").context("run this with `cargo bench`")?;
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "tidegate",
            "--bin",
            "tidegate",
        ])
        .status()?;
    ensure!(status.success(), "`tidegate` could not be built");
    Ok(target_folder()?.join("release").join("tidegate"))
}

/// A line of `/proc/PID/status` in bytes, such as `VmRSS`.
pub fn memory_of(pid: u32, line: &str) -> Result<u64> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).with_context(|| format!("`{file}`"))?;
    let kibibytes = status
        .lines()
        .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .with_context(|| format!("`{file}` has no `{line}`"))?;
    Ok(kibibytes.parse::<u64>()? * 1024)
}

/// A Redis server of our own on loopback, which keeps nothing.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl RedisServer {
    /// Starts one; `None` if Redis is not installed.
    pub fn start() -> Result<Option<Self>> {
        let folder = temporary_folder()?;
        // Taken and given back: nobody else is likely to get it in between.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let Ok(child) = command(folder.path(), port).spawn() else {
            return Ok(None);
        };
        let server = RedisServer {
            child,
            port,
            _folder: folder,
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                bail!("`redis-server` does not answer");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(Some(server))
    }

    pub fn url(&self) -> String {
        format!("redis://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // Nothing is lost with it, and nobody is left to hear of an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, port: u16) -> Command {
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--port", &port.to_string(), "--dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
