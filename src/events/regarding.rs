//! The objects that events are about.

use kube::Client;
use kube::api::{ListParams, Request};
use serde_json::Value;

use crate::model::ObjectRef;

/// Where objects of a kind are: API version, path of the API, and name in the path.
fn place(kind: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match kind {
        "Namespace" => ("v1", "/api/v1", "namespaces"),
        "Node" => ("v1", "/api/v1", "nodes"),
        "ServiceAccount" => ("v1", "/api/v1", "serviceaccounts"),
        "Service" => ("v1", "/api/v1", "services"),
        "Pod" => ("v1", "/api/v1", "pods"),
        "EndpointSlice" => ("discovery.k8s.io/v1", "/apis/discovery.k8s.io/v1", "endpointslices"),
        _ => return None,
    })
}

/// API version and uid of an object; `None` where there is no such object.
///
/// It is listed by its name: that needs no permission beyond those that the source has.
pub(super) async fn find(
    client: &Client,
    object: &ObjectRef,
) -> kube::Result<Option<(&'static str, String)>> {
    let Some((version, api, plural)) = place(object.kind) else { return Ok(None) };
    let path = if object.namespace.is_empty() {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{}/{plural}", object.namespace)
    };
    let params = ListParams::default().fields(&format!("metadata.name={}", object.name));
    let request = Request::new(path).list_metadata(&params).map_err(kube::Error::BuildRequest)?;
    let list: Value = client.request(request).await?;
    let uid = list.pointer("/items/0/metadata/uid").and_then(Value::as_str);
    Ok(uid.map(|uid| (version, uid.to_owned())))
}
