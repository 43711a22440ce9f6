//! kubectl, as a user would call it.

use std::process::Output;

use anyhow::Result;

use super::Cluster;
use super::access::Identity;
use super::parts::Files;
use crate::command::Call;
use crate::places;

impl Cluster {
    /// Runs kubectl as the administrator and returns its standard output; an error with its own words if it fails.
    pub async fn kubectl(&self, args: &[&str], stdin: &str) -> Result<String> {
        self.call(&self.admin, args)?.stdin(stdin).text().await
    }

    /// Runs kubectl as this identity; whether it succeeded is in the answer.
    pub async fn kubectl_as(&self, who: &Identity, args: &[&str], stdin: &str) -> Result<Output> {
        self.call(who, args)?.stdin(stdin).run().await
    }

    /// Creates or changes the objects of this YAML, as `kubectl apply` does.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        self.kubectl(&["apply", "-f", "-"], yaml).await
    }

    fn call(&self, who: &Identity, args: &[&str]) -> Result<Call> {
        let call = Call::new(&places::tool("kubectl")?)
            .env("KUBECONFIG", self.kubeconfig(who)?)
            // Its cache of what the server offers goes with the cluster.
            .env("HOME", Files(self.folder.path()).path("home"));
        Ok(call.args(args))
    }
}
