//! A Unix socket at a path: taken over from a process that is gone, and never from one that lives.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// How many connections may wait to be accepted, as of the standard library.
const BACKLOG: i32 = 4096;

/// Why a Unix socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A process answers there.
    #[error("{0} is served by another process: stop that one, or choose another path")]
    Busy(PathBuf),
    /// Something else has the name.
    #[error("{0} exists and is no socket: remove it, or choose another path")]
    NoSocket(PathBuf),
    /// The folder cannot be made.
    #[error("the folder of {path} cannot be made")]
    Folder {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("{path} cannot be bound (at most 107 bytes; the folder must be writable)")]
    Bind {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A bound socket; its file goes when it is dropped, unless another process has replaced it.
#[derive(Debug)]
pub struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    inode: Option<(u64, u64)>,
}

impl Socket {
    /// Binds a path; its folder is created if missing, which is said, since a path that was
    /// misspelled would make one too.
    ///
    /// Who may connect is decided by its mode (to write is to connect) and by the folder.
    pub async fn bind(path: &Path, mode: u32) -> Result<Self, SocketError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let missing = !folder.exists();
            std::fs::create_dir_all(folder)
                .map_err(|source| SocketError::Folder { path: path.into(), source })?;
            if missing {
                tracing::info!(folder = %folder.display(), "created the folder of the xDS socket");
            }
        }
        clear(path).await?;
        let failed = |source| SocketError::Bind { path: path.into(), source };
        let listener = listen(path, mode).map_err(failed)?;
        Ok(Self { listener, path: path.into(), inode: inode(path) })
    }
}

/// Nobody can connect before the mode is set: until it listens, a socket refuses everybody.
fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    let set = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    if let Err(error) = set.and_then(|()| socket.listen(BACKLOG)) {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    socket.set_nonblocking(true)?;
    UnixListener::from_std(OwnedFd::from(socket).into())
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes what a dead process left behind.
async fn clear(path: &Path) -> Result<(), SocketError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(SocketError::NoSocket(path.into()));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
                .map_err(|source| SocketError::Bind { path: path.into(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // It answers, or is too busy to (EAGAIN), or is not ours to ask.
        _ => Err(SocketError::Busy(path.into())),
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    const MODE: u32 = 0o640;

    #[tokio::test]
    async fn a_socket_goes_with_its_process_and_is_taken_over_from_a_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/xds.sock");
        let socket = Socket::bind(&path, MODE).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert!(matches!(Socket::bind(&path, MODE).await, Err(SocketError::Busy(_))));
        drop(socket);
        assert!(!path.exists());
        // A process that is killed leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = Socket::bind(&path, MODE).await.unwrap();
        // One that was replaced leaves the file of its successor.
        std::fs::remove_file(&path).unwrap();
        let other = Socket::bind(&path, MODE).await.unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(Socket::bind(&path, MODE).await, Err(SocketError::NoSocket(_))));
        assert!(matches!(
            Socket::bind(&path.join("under"), MODE).await,
            Err(SocketError::Folder { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let long = folder.path().join("x".repeat(120));
        assert!(matches!(Socket::bind(&long, MODE).await, Err(SocketError::Bind { .. })));
    }
}
