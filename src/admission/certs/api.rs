//! Reading and writing the Secret and the configuration, as they are.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1;
use k8s_openapi::jiff::fmt::rfc2822;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::asked::ROTATE;
use super::authority::{Authorities, Unix};
use super::bundle::{self, Configuration};
use super::secret::{self, Secret};
use super::settings::Settings;
use crate::api::ApiError;
use crate::index::FIELD_MANAGER;

/// How long one request may take.
pub(super) const LIMIT: Duration = Duration::from_secs(4);

/// The way out where we may not do something.
const GRANT: &str =
    "grant our ServiceAccount the Role aether-webhook of charts/manifests/rbac.yaml";

/// What was read at one time.
#[derive(Debug)]
pub(super) struct Reading {
    pub secret: Secret,
    pub configuration: Configuration,
    /// What time it is, by the API server's clock.
    pub wall: Option<Unix>,
    /// The Secret as it stands, whole.
    pub object: Option<Value>,
}

/// The API server.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
    secrets: String,
    secret: String,
    configuration: String,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubernetes")
    }
}

impl Kubernetes {
    /// The one that a client speaks to.
    pub fn new(client: Client, settings: &Settings) -> Self {
        let secrets = format!("/api/v1/namespaces/{}/secrets", settings.namespace);
        let secret = format!("{secrets}/{}", settings.secret);
        let group = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let configuration = format!("{group}/{}", settings.configuration);
        Self { client, secrets, secret, configuration }
    }

    /// The client.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Reads both, not from a cache.
    pub(super) async fn read(&self) -> Reading {
        let (secret, configuration) =
            futures::join!(self.get(&self.secret), self.get(&self.configuration));
        let wall = [&secret, &configuration].into_iter().flatten().find_map(|(_, wall)| *wall);
        let (secret, object) = match secret {
            Ok((Some(object), _)) => (read_secret(&object), Some(object)),
            Ok((None, _)) => (Secret::Absent, None),
            Err(error) => (Secret::Unknown(error.to_string()), None),
        };
        let configuration = match configuration {
            Ok((Some(object), _)) => {
                match serde_json::from_value::<MutatingWebhookConfiguration>(object) {
                    Ok(object) => Configuration::of(object),
                    Err(error) => Configuration::Unknown(error.to_string()),
                }
            }
            Ok((None, _)) => Configuration::Absent,
            Err(error) => Configuration::Unknown(error.to_string()),
        };
        Reading { secret, configuration, wall, object }
    }

    async fn get(&self, path: &str) -> Result<(Option<Value>, Option<Unix>), ApiError> {
        self.send(Method::GET, path, None, Vec::new()).await
    }

    /// Creates the Secret.
    pub(super) async fn create(
        &self,
        settings: &Settings,
        contents: &Authorities,
    ) -> Result<(), ApiError> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": settings.secret,
                "labels": { "app.kubernetes.io/name": "aether" },
            },
            "type": "Opaque",
            "data": secret::data(contents),
        });
        let path = format!("{}?fieldManager={FIELD_MANAGER}", self.secrets);
        self.write(Method::POST, &path, "application/json", &object).await
    }

    /// Replaces the data of this Secret, and nothing else of it.
    pub(super) async fn replace(
        &self,
        mut object: Value,
        contents: &Authorities,
    ) -> Result<(), ApiError> {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("data".to_owned(), json!(secret::data(contents)));
        }
        let path = format!("{}?fieldManager={FIELD_MANAGER}", self.secret);
        self.write(Method::PUT, &path, "application/json", &object).await
    }

    /// Deletes it, where it is still this one.
    pub(super) async fn delete(&self, uid: &str, version: &str) -> Result<(), ApiError> {
        let preconditions = json!({ "preconditions": { "uid": uid, "resourceVersion": version } });
        self.write(Method::DELETE, &self.secret, "application/json", &preconditions).await
    }

    /// Gives entries of the configuration this bundle.
    pub(super) async fn bundle(
        &self,
        version: &str,
        entries: &[(usize, String)],
        pem: &str,
    ) -> Result<(), ApiError> {
        let operations = bundle::operations(version, entries, pem);
        let path = format!("{}?fieldManager={FIELD_MANAGER}", self.configuration);
        let sent = self.write(Method::PATCH, &path, "application/json-patch+json", &operations);
        match sent.await {
            // So it says that a `test` failed.
            Err(ApiError::Refused(words)) => Err(ApiError::Overtaken(words)),
            sent => sent,
        }
    }

    async fn write(
        &self,
        method: Method,
        path: &str,
        content: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        let body =
            serde_json::to_vec(object).map_err(|error| ApiError::Failed(error.to_string()))?;
        let (found, _) = self.send(method, path, Some(content), body).await?;
        found.map(drop).ok_or_else(|| ApiError::Overtaken("it is gone".to_owned()))
    }

    /// Sends a request; `None`: there is no such object.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<&str>,
        body: Vec<u8>,
    ) -> Result<(Option<Value>, Option<Unix>), ApiError> {
        let failed = |error: &dyn std::fmt::Display| ApiError::Failed(error.to_string());
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content) = content {
            request = request.header(http::header::CONTENT_TYPE, content);
        }
        let request = request.body(Body::from(body)).map_err(|error| failed(&error))?;
        let ask = async {
            let answer = self.client.send(request).await.map_err(|error| failed(&error))?;
            let wall = answer.headers().get(http::header::DATE).and_then(date);
            let status = answer.status();
            let bytes = answer.into_body().collect().await.map_err(|error| failed(&error))?;
            Ok((status, wall, bytes.to_bytes()))
        };
        let answer = timeout(LIMIT, ask).await;
        let (status, wall, bytes) =
            answer.map_err(|_| failed(&format!("no answer within {LIMIT:?}")))??;
        if status.is_success() {
            let object = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
            return Ok((Some(object), wall));
        }
        let said = serde_json::from_slice::<Status>(&bytes).map(|status| status.message);
        let said = said.unwrap_or_else(|_| status.to_string());
        if status == http::StatusCode::NOT_FOUND {
            return Ok((None, wall));
        }
        Err(match ApiError::of(status.as_u16(), said) {
            ApiError::Forbidden(said) => ApiError::Forbidden(format!("{said}: {GRANT}")),
            error => error,
        })
    }
}

fn read_secret(object: &Value) -> Secret {
    // Its words must not quote what it cannot read.
    let Ok(read) = serde_json::from_value::<v1::Secret>(object.clone()) else {
        return Secret::Unknown("it is no Secret that can be read".to_owned());
    };
    let mut annotations = read.metadata.annotations.unwrap_or_default();
    let asked = annotations.remove(ROTATE).filter(|asked| !asked.is_empty());
    Secret::Found {
        asked: asked.map(Into::into),
        uid: read.metadata.uid.unwrap_or_default(),
        version: read.metadata.resource_version.unwrap_or_default(),
        immutable: read.immutable.unwrap_or_default(),
        contents: secret::read(&read.data.unwrap_or_default()),
    }
}

/// What an answer says of the time.
fn date(value: &http::HeaderValue) -> Option<Unix> {
    let time = rfc2822::DateTimeParser::new().parse_timestamp(value.as_bytes()).ok()?;
    Unix::try_from(time.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_answer_is_read() {
        let of = |text: &str| date(&http::HeaderValue::from_str(text).ok()?);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(of("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in ["", "yesterday", "Sun, 06 Nov 1894 08:49:37 GMT"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
