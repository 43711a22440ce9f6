//! The command line: parse, then call.

use std::process::ExitCode;

fn main() -> ExitCode {
    aether::cli::environment::parse::<aether::cli::Cli>().run()
}
