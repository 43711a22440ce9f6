//! Where the network namespaces of pods are pinned, for node proxies.

use std::path::PathBuf;

use clap::Args;

/// Where they are pinned unless it is said otherwise.
pub const DEFAULT_FOLDER: &str = "/run/aether/netns";

/// The pinned network namespaces.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Node proxies")]
pub struct PinnedNamespaces {
    /// Folder of pinned network namespaces, or `none`: the register of the pods that node proxies
    /// serve.
    ///
    /// A node proxy (node/NAME) has listeners for each managed pod of its node while a network
    /// namespace is mounted on the file DIR/UID, where UID is the pod's. Only what this process
    /// sees counts, so the proxy of a node connects to the process on that node, and finds the
    /// folder under the same path. Without the folder, node proxies wait: they get nothing, and
    /// keep what they have.
    #[arg(
        long,
        env = "AETHER_NETNS_DIR",
        value_name = "DIR",
        default_value = DEFAULT_FOLDER,
        value_parser = folder
    )]
    netns_dir: Folder,
}

/// A folder, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder(Option<PathBuf>);

/// Takes a path that means the same to an Envoy, which has another working directory.
fn folder(text: &str) -> Result<Folder, String> {
    match text {
        "" | "none" => Ok(Folder(None)),
        path if path.starts_with('/') => Ok(Folder(Some(path.into()))),
        path => Err(format!(
            "a relative path, and Envoy runs in a folder of its own: write it from / on, as /run/{path}"
        )),
    }
}

impl PinnedNamespaces {
    /// The folder; `None` where there is to be none.
    pub fn folder(&self) -> Option<PathBuf> {
        self.netns_dir.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, folder};

    #[test]
    fn a_folder_is_absolute_or_none() {
        for none in ["", "none"] {
            assert_eq!(folder(none), Ok(Folder(None)));
        }
        assert_eq!(folder("/run/x"), Ok(Folder(Some("/run/x".into()))));
        for relative in ["netns", "./netns", "None"] {
            assert!(folder(relative).is_err_and(|error| error.contains("from / on")), "{relative}");
        }
    }
}
