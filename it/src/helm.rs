//! Helm, as a user would call it.

use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use crate::command::Call;
use crate::places;

/// A Helm whose caches and settings are its own.
#[derive(Debug)]
pub struct Helm {
    folder: TempDir,
}

impl Helm {
    /// One that knows no repositories.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: places::folder()? })
    }

    /// Checks a chart, warnings included, and returns what it says; an error with its words where it finds anything.
    pub async fn lint(&self, chart: &Path, args: &[&str]) -> Result<String> {
        self.call(&["lint", "--strict"])?.args([chart]).args(args).text().await
    }

    /// The manifests of a chart for this release name (YAML, several documents), made without a cluster. `args` are
    /// more of Helm's own: `--set`, `--values`, `--namespace`, `--kube-version`.
    pub async fn template(&self, release: &str, chart: &Path, args: &[&str]) -> Result<String> {
        self.call(&["template", release])?.args([chart]).args(args).text().await
    }

    /// Installs a release or changes it, waits until its objects are as they should be, and returns what it says.
    pub async fn upgrade(
        &self,
        kubeconfig: &Path,
        release: &str,
        chart: &Path,
        args: &[&str],
    ) -> Result<String> {
        let call = self.call(&["upgrade", "--install", "--wait", "--timeout", "100s", release])?;
        call.args([chart]).args(args).env("KUBECONFIG", kubeconfig).text().await
    }

    /// Any other command that asks a cluster: `["uninstall", "aether", "--namespace", "mesh"]`.
    pub async fn run(&self, kubeconfig: &Path, args: &[&str]) -> Result<String> {
        self.call(args)?.env("KUBECONFIG", kubeconfig).text().await
    }

    fn call(&self, args: &[&str]) -> Result<Call> {
        let mut call = Call::new(&places::tool("helm")?).args(args);
        for (name, folder) in [
            ("HOME", "home"),
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            call = call.env(name, self.folder.path().join(folder));
        }
        // No cluster unless one is named.
        Ok(call.env("KUBECONFIG", self.folder.path().join("none")))
    }
}
