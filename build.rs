//! Makes the descriptor set of every protobuf type that is served or rendered, without protoc.
//!
//! The .proto files are those of the package `envoy-types`, whose Rust types the code uses, so that
//! both are always of one version. The roots stand in `proto/roots.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use prost::Message;
use serde_json::Value;

const ROOTS: &str = "proto/roots.txt";
const PACKAGE: &str = "envoy-types";

fn main() -> Result<()> {
    for path in ["build.rs", "proto", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let folder = proto_folder().with_context(|| format!("the .proto files of {PACKAGE}"))?;
    let roots = std::fs::read_to_string(ROOTS).context(ROOTS)?;
    let roots =
        roots.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));

    let mut includes = vec![PathBuf::from("proto")];
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        includes.push(entry?.path());
    }
    includes.sort();
    let mut compiler = protox::Compiler::new(&includes)?;
    compiler.include_imports(true);
    for root in roots {
        compiler.open_file(root).map_err(|error| {
            anyhow::anyhow!(
                "{root}, named in {ROOTS}, with the files of {}: {error}",
                folder.display()
            )
        })?;
    }
    let out = std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?;
    let out = Path::new(&out).join("descriptors.bin");
    let set = compiler.file_descriptor_set().encode_to_vec();
    std::fs::write(&out, set).with_context(|| out.display().to_string())
}

/// The folder `proto` of the package, wherever cargo keeps its sources: a registry, a vendor
/// folder or a path.
fn proto_folder() -> Result<PathBuf> {
    // Without the network first: it is quick, and all that a build needs is here. What only tests
    // need may be missing then, and cargo fetches it, unless it was told to stay offline.
    let metadata = metadata(&["--offline"]).or_else(|_| metadata(&[]))?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let package = packages
        .into_iter()
        .flatten()
        .find(|package| package.get("name").and_then(Value::as_str) == Some(PACKAGE));
    let Some(manifest) =
        package.and_then(|package| package.get("manifest_path")).and_then(Value::as_str)
    else {
        bail!("`cargo metadata` does not know {PACKAGE}: it has to stand in Cargo.toml");
    };
    let folder = Path::new(manifest).with_file_name("proto");
    ensure!(
        folder.is_dir(),
        "{} is missing: remove the folder of the package, so that cargo unpacks it again",
        folder.display()
    );
    Ok(folder)
}

fn metadata(more: &[&str]) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").context("cargo sets CARGO")?;
    let host = std::env::var("TARGET").context("cargo sets TARGET")?;
    let output = Command::new(&cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host])
        .args(more)
        .output()
        .with_context(|| format!("{} metadata", cargo.display()))?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
