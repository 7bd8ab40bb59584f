//! The command-line tool `tidegate`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
