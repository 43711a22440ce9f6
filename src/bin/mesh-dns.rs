//! The resolver of a node: parse, then call.

use std::process::ExitCode;

fn main() -> ExitCode {
    aether::cli::mesh_dns::MeshDns::main()
}
