//! The command line: parse, then call.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    aether::cli::Cli::parse().run()
}
