//! Objects of a cluster, written as JSON.

use anyhow::{Context, Result};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client};
use serde_json::Value;

/// Writes and removes objects of the kinds that the mesh looks at, and of RBAC.
#[derive(Clone)]
pub struct Objects(Client);

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Objects")
    }
}

impl Objects {
    /// By this client.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// Creates the object, or gives it this form whoever wrote it (server-side apply). `apiVersion` may be left out.
    pub async fn put(&self, object: &Value) -> Result<()> {
        let (api, name, whole) = self.of(object)?;
        let params = PatchParams::apply("it").force();
        let put = api.patch(&name, &params, &Patch::Apply(&whole)).await;
        put.with_context(|| format!("putting {name}: {whole}")).map(drop)
    }

    /// Creates the object; an error if it exists.
    pub async fn create(&self, object: &Value) -> Result<DynamicObject> {
        let (api, name, whole) = self.of(object)?;
        let created = api.create(&PostParams::default(), &serde_json::from_value(whole)?).await;
        created.with_context(|| format!("creating {name}"))
    }

    /// Merges this into the object (a merge patch); `kind` and names stand in it.
    pub async fn merge(&self, change: &Value) -> Result<DynamicObject> {
        let (api, name, whole) = self.of(change)?;
        let merged = api.patch(&name, &PatchParams::default(), &Patch::Merge(&whole)).await;
        merged.with_context(|| format!("changing {name}"))
    }

    /// Merges this into the object's status.
    pub async fn merge_status(&self, change: &Value) -> Result<DynamicObject> {
        let (api, name, whole) = self.of(change)?;
        let merged = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&whole)).await;
        merged.with_context(|| format!("changing the status of {name}"))
    }

    /// The object as it is now.
    pub async fn get(&self, object: &Value) -> Result<DynamicObject> {
        let (api, name, _) = self.of(object)?;
        api.get(&name).await.with_context(|| format!("reading {name}"))
    }

    /// Deletes the object that this names, at once.
    pub async fn delete(&self, object: &Value) -> Result<()> {
        let (api, name, _) = self.of(object)?;
        let params = DeleteParams::default().grace_period(0);
        api.delete(&name, &params).await.with_context(|| format!("deleting {name}")).map(drop)
    }

    fn of(&self, object: &Value) -> Result<(Api<DynamicObject>, String, Value)> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let kind = text("/kind").context("an object without a kind")?;
        let name = text("/metadata/name").context("an object without a name")?;
        let (group, version, plural) = match kind {
            "EndpointSlice" => ("discovery.k8s.io", "v1", "endpointslices"),
            "ClusterRole" => ("rbac.authorization.k8s.io", "v1", "clusterroles"),
            "ClusterRoleBinding" => ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
            "Role" => ("rbac.authorization.k8s.io", "v1", "roles"),
            "RoleBinding" => ("rbac.authorization.k8s.io", "v1", "rolebindings"),
            "Deployment" => ("apps", "v1", "deployments"),
            "Lease" => ("coordination.k8s.io", "v1", "leases"),
            "Namespace" => ("", "v1", "namespaces"),
            "Node" => ("", "v1", "nodes"),
            "ServiceAccount" => ("", "v1", "serviceaccounts"),
            "Service" => ("", "v1", "services"),
            "Pod" => ("", "v1", "pods"),
            other => anyhow::bail!("the rig writes no {other}"),
        };
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(self.0.clone(), namespace, &resource),
            None => Api::all_with(self.0.clone(), &resource),
        };
        let mut whole = object.clone();
        if let Some(fields) = whole.as_object_mut() {
            fields.entry("apiVersion").or_insert_with(|| resource.api_version.clone().into());
        }
        Ok((api, name.to_owned(), whole))
    }
}
