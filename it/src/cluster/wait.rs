//! Waiting for what controllers, scheduler and kubelets do.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use super::Cluster;
use super::options::FakeNode;
use crate::eventually;

/// How long they may take, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(2);

impl Cluster {
    /// Adds a node; [`Cluster::wait_for_nodes`] waits until it is ready.
    pub async fn add_node(&self, node: &FakeNode) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        let object = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": node.name,
                "labels": {
                    "kubernetes.io/hostname": node.name,
                    "kubernetes.io/os": "linux",
                    "topology.kubernetes.io/zone": node.zone,
                    "topology.kubernetes.io/region": node.region,
                },
            },
        }))?;
        nodes.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Removes a node, as when its machine is taken away.
    pub async fn remove_node(&self, name: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        nodes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// All nodes, as they are now.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        Ok(nodes.list(&ListParams::default()).await?.items)
    }

    /// Waits until there are this many nodes, all of them ready and with addresses for pods.
    pub async fn wait_for_nodes(&self, count: usize) -> Result<Vec<Node>> {
        let ask = || async {
            let nodes = self.nodes().await?;
            let ready = nodes.iter().filter(|node| is_ready(node)).count();
            ensure!(
                nodes.len() == count && ready == count,
                "{ready} of {} are ready, {count} wanted",
                nodes.len()
            );
            Ok(nodes)
        };
        eventually("ready nodes", LIMIT, ask).await
    }

    /// Waits until this namespace has the ServiceAccount that its pods run as (the controllers make it).
    pub async fn wait_for_namespace(&self, namespace: &str) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let ask = || async { Ok(accounts.get("default").await?) };
        eventually(&format!("the ServiceAccount {namespace}/default"), LIMIT, ask).await.map(drop)
    }

    /// Waits until exactly this many pods of a namespace match the label selector, all of them ready and with an
    /// address, and returns them.
    pub async fn wait_for_pods(
        &self,
        namespace: &str,
        selector: &str,
        count: usize,
    ) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client().await?, namespace);
        let wanted = ListParams::default().labels(selector);
        let ask = || async {
            let found = pods.list(&wanted).await?.items;
            let running = found.iter().filter(|pod| runs(pod)).count();
            ensure!(
                found.len() == count && running == count,
                "{running} of {} run, {count} wanted",
                found.len()
            );
            Ok(found)
        };
        eventually(&format!("pods {selector} of {namespace}"), LIMIT, ask).await
    }
}

/// Whether a node is ready and has addresses to give to pods (until then kwok gives them addresses of its own choice).
fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.filter(|one| one.type_ == "Ready").any(|one| one.status == "True");
    ready && node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some())
}

/// Whether a pod is ready, has an address, and is not on its way out.
fn runs(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let conditions = status.conditions.iter().flatten();
    let ready = conditions.filter(|one| one.type_ == "Ready").any(|one| one.status == "True");
    ready && status.pod_ip.is_some() && pod.metadata.deletion_timestamp.is_none()
}
