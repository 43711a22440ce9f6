//! Where the programs are, and where the rig's own files go.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, chown};
use tempfile::TempDir;

/// The user that a sidecar runs as; the rules of its pod skip it.
pub const SIDECAR_USER: u32 = 1337;

/// A folder of this process that goes with its value. It belongs to the sidecar's user, so that an Envoy can make its
/// admin socket there. The name bears our process id, so that it can be swept if we are killed. With `AETHER_IT_KEEP`
/// set, it stays, logs and all, as `/tmp/aether-kept-<process id>-*`.
pub fn folder() -> Result<TempDir> {
    let keep = std::env::var_os("AETHER_IT_KEEP").is_some();
    let prefix = if keep { "aether-kept" } else { "aether-it" };
    let folder = tempfile::Builder::new()
        .prefix(&format!("{prefix}-{}-", std::process::id()))
        .disable_cleanup(keep)
        .tempdir_in("/tmp")
        .context("a folder in /tmp could not be made")?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    if Uid::effective().is_root() {
        chown(folder.path(), Some(SIDECAR_USER.into()), Some(SIDECAR_USER.into()))?;
    }
    Ok(folder)
}

/// A program of the workspace, from the profile that this very program was built with. `AETHER_IT_PROGRAMS` names
/// another folder (to measure a release build, say).
pub fn program(name: &str) -> Result<PathBuf> {
    let folder = match std::env::var_os("AETHER_IT_PROGRAMS") {
        Some(folder) => PathBuf::from(folder),
        None => profile()?,
    };
    let program = folder.join(name);
    if !program.is_file() {
        bail!(
            "there is no {}: run `cargo build --workspace --bins` (it/test does)",
            program.display()
        );
    }
    Ok(program)
}

/// The same at a path that any user can run.
pub fn program_for_all(name: &str) -> Result<PathBuf> {
    let built = program(name)?;
    if built.ancestors().all(open_to_all) { Ok(built) } else { copy_for_all(name, &built) }
}

/// The stock Envoy that `it/setup` installed, at a path that the sidecar's user can run.
pub fn envoy() -> Result<PathBuf> {
    tool_for_all("envoy")
}

/// A program (or another file) that `it/setup` installed.
pub fn tool(name: &str) -> Result<PathBuf> {
    built(&format!("it/bin/{name}")).with_context(|| format!("{name}: run it/setup"))
}

/// A file below the target folder.
pub fn built(path: &str) -> Result<PathBuf> {
    let profile = profile()?;
    profile.ancestors().map(|folder| folder.join(path)).find(|path| path.is_file()).with_context(
        || format!("there is no {path} above {} (it/test makes it)", profile.display()),
    )
}

/// The same at a path that any user can run.
pub fn tool_for_all(name: &str) -> Result<PathBuf> {
    let installed = tool(name)?;
    if installed.ancestors().all(open_to_all) {
        Ok(installed)
    } else {
        copy_for_all(name, &installed)
    }
}

/// The folder of the running program's profile: `target/debug`, for a test in `target/debug/deps` too.
fn profile() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the running program has no folder")?;
    let above = if folder.ends_with("deps") { folder.parent() } else { None };
    Ok(above.unwrap_or(folder).to_owned())
}

/// Whether any user may pass (a folder) or run it (a file).
fn open_to_all(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.metadata().is_ok_and(|found| found.mode() & 0o001 != 0)
}

/// A repository below /root is closed to other users, so what they run is copied once to where it is not.
fn copy_for_all(name: &str, installed: &Path) -> Result<PathBuf> {
    let folder = Path::new("/var/tmp/aether-it");
    std::fs::create_dir_all(folder)?;
    if folder.symlink_metadata()?.uid() != Uid::effective().as_raw() {
        bail!("{} belongs to another user: remove it", folder.display());
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    let source = installed.metadata()?;
    let copy = folder.join(format!("{name}-{}-{}", source.len(), source.mtime()));
    if !copy.is_file() {
        let fresh = tempfile::NamedTempFile::new_in(folder)?;
        std::fs::copy(installed, fresh.path())?;
        std::fs::set_permissions(fresh.path(), std::fs::Permissions::from_mode(0o755))?;
        fresh.persist(&copy)?;
    }
    Ok(copy)
}
