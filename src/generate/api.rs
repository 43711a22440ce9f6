//! What the generator asks of an API server.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::api::ApiError;
use crate::model::ServiceKey;

/// Services as they are, unknown fields included; and the two things to look at before one is
/// deleted. Nothing is read from a cache.
pub trait Services: Send + Sync {
    /// Reads a Service; `None` where there is none.
    fn get(&self, key: &ServiceKey)
    -> impl Future<Output = Result<Option<Value>, ApiError>> + Send;

    /// Creates a Service (POST).
    fn create(
        &self,
        key: &ServiceKey,
        service: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Replaces a Service (PUT), where its resourceVersion is still that of `service`.
    fn replace(
        &self,
        key: &ServiceKey,
        service: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Deletes a Service, where its uid and resourceVersion are still these.
    fn delete(
        &self,
        key: &ServiceKey,
        uid: &str,
        version: &str,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// The managed pods of a ServiceAccount, which the key names.
    fn pods(&self, key: &ServiceKey) -> impl Future<Output = Result<Vec<Pod>, ApiError>> + Send;

    /// Whether a ServiceAccount exists.
    fn account(&self, key: &ServiceKey) -> impl Future<Output = Result<bool, ApiError>> + Send;
}
