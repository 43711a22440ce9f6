//! The generator's requests to a Kubernetes API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions, Request};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

use super::Services;
use crate::api::ApiError;
use crate::index::{FIELD_MANAGER, MANAGED};
use crate::model::ServiceKey;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A Kubernetes API server.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
}

impl Kubernetes {
    /// The one that a client speaks to.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends a request about Services, as JSON, so that nothing of them is lost.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, ApiError> {
        let request = request.map_err(|error| ApiError::Failed(error.to_string()))?;
        answered(self.client.request::<Value>(request)).await
    }
}

/// The Services of a namespace.
fn services(namespace: &str) -> Request {
    Request::new(format!("/api/v1/namespaces/{namespace}/services"))
}

fn params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn bytes(service: &Value) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(service).map_err(|error| ApiError::Failed(error.to_string()))
}

/// Waits for an answer, and reads the error in it.
async fn answered<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    let answer = timeout(LIMIT, request).await;
    let answer = answer.map_err(|_| ApiError::Failed(format!("no answer within {LIMIT:?}")))?;
    answer.map_err(|error| {
        let kube::Error::Api(status) = error else { return ApiError::Failed(error.to_string()) };
        let closing = || {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
        };
        match status.code {
            403 if closing() => ApiError::Overtaken(status.message),
            code => ApiError::of(code, status.message),
        }
    })
}

impl Services for Kubernetes {
    async fn get(&self, key: &ServiceKey) -> Result<Option<Value>, ApiError> {
        let request = services(&key.namespace).get(&key.name, &GetParams::default());
        match self.send(request).await {
            Ok(service) => Ok(Some(service)),
            Err(ApiError::Overtaken(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        let request = services(&key.namespace).create(&params(), bytes(service)?);
        self.send(request).await.map(drop)
    }

    async fn replace(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        let request = services(&key.namespace).replace(&key.name, &params(), bytes(service)?);
        self.send(request).await.map(drop)
    }

    async fn delete(&self, key: &ServiceKey, uid: &str, version: &str) -> Result<(), ApiError> {
        let preconditions =
            Preconditions { resource_version: Some(version.to_owned()), uid: Some(uid.to_owned()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let request = services(&key.namespace).delete(&key.name, &params);
        self.send(request).await.map(drop)
    }

    async fn pods(&self, key: &ServiceKey) -> Result<Vec<Pod>, ApiError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        // Without a resourceVersion the list is not older than the question.
        let params = ListParams::default()
            .labels(&format!("{MANAGED}=true"))
            .fields(&format!("spec.serviceAccountName={}", key.name));
        answered(pods.list(&params)).await.map(|list| list.items)
    }

    async fn account(&self, key: &ServiceKey) -> Result<bool, ApiError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &key.namespace);
        answered(accounts.get_opt(&key.name)).await.map(|account| account.is_some())
    }
}
