//! Waits for an identity: parse, then call.

use std::process::ExitCode;

fn main() -> ExitCode {
    aether::cli::identity_ready::IdentityReady::main()
}
