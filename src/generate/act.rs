//! Doing one thing: what is looked at before, and what came of it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use super::Services;
use super::form::{self, Wanted};
use super::plan::{Operation, Why};
use crate::api::ApiError;
use crate::index::{generated, is_present};
use crate::leader::{NotWritten, Permit};
use crate::model::{Generated, ServiceKey};

/// How long one write may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is written.
    Written,
    /// It is as it should be: the registry lags behind.
    AsWanted,
    /// What was to be deleted is needed after all.
    Kept,
    /// There is a Service of that name that was not generated; it is left alone.
    Taken,
    /// Somebody else wrote meanwhile: look again.
    Overtaken,
    /// The API server says no, in these words.
    Refused(String),
    /// We may not do it. What is missing is said elsewhere.
    Forbidden(String),
    /// No answer that means anything.
    Failed(String),
    /// The leadership is over.
    Lost,
}

impl Outcome {
    /// For logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::AsWanted => "as_wanted",
            Self::Kept => "kept",
            Self::Taken => "taken",
            Self::Overtaken => "overtaken",
            Self::Refused(_) => "refused",
            Self::Forbidden(_) => "forbidden",
            Self::Failed(_) => "failed",
            Self::Lost => "lost",
        }
    }
}

impl From<ApiError> for Outcome {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Overtaken(_) => Self::Overtaken,
            ApiError::Refused(words) => Self::Refused(words),
            ApiError::Forbidden(words) => Self::Forbidden(words),
            ApiError::Failed(words) => Self::Failed(words),
        }
    }
}

/// Does one thing, if it is still to be done by what the API server says now.
pub async fn act(operation: &Operation, api: &impl Services, permit: &Permit) -> Outcome {
    let done = match operation {
        Operation::Create(key, wanted) => create(key, wanted, api, permit).await,
        Operation::Correct(key, wanted) => correct(key, wanted.as_ref(), api, permit).await,
        Operation::Delete(key, why) => delete(key, why, api, permit).await,
    };
    done.unwrap_or_else(Outcome::from)
}

/// Makes one write.
async fn write(
    permit: &Permit,
    request: impl Future<Output = Result<(), ApiError>>,
) -> Result<Outcome, ApiError> {
    match permit.write(LIMIT, request).await {
        Ok(done) => done.map(|()| Outcome::Written),
        Err(NotWritten::Lost) => Ok(Outcome::Lost),
        Err(error @ NotWritten::TimedOut(_)) => Err(ApiError::Failed(error.to_string())),
    }
}

async fn create(
    key: &ServiceKey,
    wanted: &Wanted,
    api: &impl Services,
    permit: &Permit,
) -> Result<Outcome, ApiError> {
    match api.get(key).await? {
        None => write(permit, api.create(key, &form::new(key, wanted))).await,
        Some(service) => put_right(key, service, Some(wanted), api, permit).await,
    }
}

async fn correct(
    key: &ServiceKey,
    wanted: Option<&Wanted>,
    api: &impl Services,
    permit: &Permit,
) -> Result<Outcome, ApiError> {
    match api.get(key).await? {
        None => Ok(Outcome::Overtaken),
        Some(service) => put_right(key, service, wanted, api, permit).await,
    }
}

/// Puts a Service right that was read just now, if it is ours.
async fn put_right(
    key: &ServiceKey,
    service: Value,
    wanted: Option<&Wanted>,
    api: &impl Services,
    permit: &Permit,
) -> Result<Outcome, ApiError> {
    let Some(generated) = ours(&service) else { return Ok(Outcome::Taken) };
    if generated.deleting || generated.headless {
        return Ok(Outcome::Overtaken);
    }
    let mut right = service.clone();
    form::put_right(&mut right, key, wanted, generated.plain);
    if right == service {
        return Ok(Outcome::AsWanted);
    }
    write(permit, api.replace(key, &right)).await
}

async fn delete(
    key: &ServiceKey,
    why: &Why,
    api: &impl Services,
    permit: &Permit,
) -> Result<Outcome, ApiError> {
    // First that there is no use for it, and then the Service itself: its resourceVersion is of a
    // time after that.
    let needed = match why {
        Why::Idle => has_pods(key, api).await?,
        Why::Gone => has_pods(key, api).await? || api.account(key).await?,
        Why::Claimed(by) => !claims(key, by, api).await?,
        Why::Headless => false,
    };
    if needed {
        return Ok(Outcome::Kept);
    }
    let Some(service) = api.get(key).await? else { return Ok(Outcome::AsWanted) };
    let Some(generated) = ours(&service) else { return Ok(Outcome::Taken) };
    if generated.deleting || (*why == Why::Headless && !generated.headless) {
        return Ok(Outcome::AsWanted);
    }
    let version = service.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.unwrap_or_default();
    write(permit, api.delete(key, &generated.uid, version)).await
}

async fn has_pods(key: &ServiceKey, api: &impl Services) -> Result<bool, ApiError> {
    Ok(api.pods(key).await?.iter().any(is_present))
}

/// Whether this Service of a user's still claims the key.
async fn claims(key: &ServiceKey, by: &str, api: &impl Services) -> Result<bool, ApiError> {
    let by = ServiceKey::new(key.namespace.clone(), by);
    let Some(service) = api.get(&by).await? else { return Ok(false) };
    let Ok(service) = serde_json::from_value::<Service>(service) else { return Ok(false) };
    Ok(generated(&service).is_none()
        && crate::index::mesh_name_of(&service) == Some(key.name.clone()))
}

/// What is read of a Service that was generated; `None` for one that was not.
fn ours(service: &Value) -> Option<Generated> {
    generated(&serde_json::from_value(service.clone()).ok()?)
}
