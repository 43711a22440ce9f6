//! One request: checked, read within the limits, decided, answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tracing::{debug, error, info, warn};

use super::limits::{Limits, Room, Taken};
use crate::admission::answer::{Answer, AnswerError};
use crate::admission::decide::{Decision, Untouched};
use crate::admission::metrics::{Failure, Metrics};
use crate::admission::{Entry, Review, ReviewError, Settings};

/// How a review is answered. A value of its own, so that a test can have it fail.
type Respond =
    dyn Fn(&Review, Entry, &Settings) -> Result<(Decision, Answer), AnswerError> + Send + Sync;

/// The webhook: what answers the requests.
pub struct Webhook {
    settings: Settings,
    metrics: Metrics,
    limits: Limits,
    room: Room,
    respond: Box<Respond>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A request that gets no decision.
struct Refusal {
    failure: Failure,
    status: StatusCode,
    /// The review's, where it could be read.
    uid: Option<String>,
    message: String,
}

impl Refusal {
    fn new(failure: Failure, status: StatusCode, message: impl Into<String>) -> Self {
        Self { failure, status, uid: None, message: message.into() }
    }
}

impl Webhook {
    /// A webhook with these settings and limits, that counts in `metrics`.
    pub fn new(settings: Settings, metrics: Metrics, limits: Limits) -> Self {
        Self::responding(settings, metrics, limits, Box::new(Answer::to))
    }

    /// The same, with answers of another kind.
    pub(super) fn responding(
        settings: Settings,
        metrics: Metrics,
        limits: Limits,
        respond: Box<Respond>,
    ) -> Self {
        let room = Room::new(&limits);
        Self { settings, metrics, limits, room, respond }
    }

    /// The paths that it serves.
    pub fn router(self: &Arc<Self>) -> Router {
        let mut router = Router::new();
        for entry in Entry::ALL {
            let webhook = self.clone();
            let handle =
                move |request: Request| async move { webhook.handle(entry, request).await };
            router = router.route(entry.path(), any(handle));
        }
        let webhook = self.clone();
        router.fallback(move |request: Request| async move { webhook.lost(&request) })
    }

    /// A request for another path.
    fn lost(&self, request: &Request) -> Response {
        let paths = Entry::ALL.map(Entry::path).join(" and ");
        let message = format!("no such path: the webhook answers at {paths}");
        debug!(path = request.uri().path(), "a request for a path that is not served");
        self.refused(Refusal::new(Failure::Path, StatusCode::NOT_FOUND, message))
    }

    async fn handle(self: Arc<Self>, entry: Entry, request: Request) -> Response {
        let start = Instant::now();
        let _in_flight = self.metrics.enter();
        let read = match checked(&request) {
            Ok(length) => self.read(length, request).await,
            Err(refusal) => Err(refusal),
        };
        // The room that the body takes is given back with the answer.
        let answered = read.and_then(|(body, _taken)| self.answer(entry, &body));
        let response = answered.unwrap_or_else(|refusal| {
            warn!(
                entry = entry.as_str(),
                status = refusal.status.as_u16(),
                uid = refusal.uid.as_deref().unwrap_or_default(),
                "a review has no decision: {}",
                refusal.message
            );
            self.refused(refusal)
        });
        self.metrics.took(start.elapsed());
        response
    }

    /// Waits for room and reads the body, both within the time of a request.
    async fn read(
        &self,
        length: Option<usize>,
        request: Request,
    ) -> Result<(Bytes, Taken), Refusal> {
        let Limits { body: most, time, .. } = self.limits;
        let until = tokio::time::Instant::now() + time;
        let too_large = || {
            let message = format!("the body is larger than the {most} bytes that are read");
            Refusal::new(Failure::TooLarge, StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let too_late = |failure, what| {
            let message = format!("{what} within {time:?}: try again");
            Refusal::new(failure, StatusCode::SERVICE_UNAVAILABLE, message)
        };
        if length.is_some_and(|length| length > most) {
            return Err(too_large());
        }
        let room = tokio::time::timeout_at(until, self.room.take(length)).await;
        let Ok(Some(taken)) = room else {
            return Err(too_late(Failure::Overloaded, "there was no room for one more review"));
        };
        let body = Limited::new(request.into_body(), most).collect();
        match tokio::time::timeout_at(until, body).await {
            Ok(Ok(body)) => Ok((body.to_bytes(), taken)),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(error)) => {
                let message = format!("the body ended early: {error}");
                Err(Refusal::new(Failure::Incomplete, StatusCode::BAD_REQUEST, message))
            }
            Err(_) => Err(too_late(Failure::TimedOut, "the body was not there")),
        }
    }

    /// Decides. Nothing here waits, and nothing that fails here takes down more than this request.
    fn answer(&self, entry: Entry, body: &[u8]) -> Result<Response, Refusal> {
        let review = Review::read(body).map_err(|unreadable| Refusal {
            failure: Failure::Unreadable,
            status: StatusCode::BAD_REQUEST,
            uid: unreadable.uid,
            message: unreadable.error.to_string(),
        })?;
        let refusal = |failure, status, message| Refusal {
            failure,
            status,
            uid: Some(review.uid.clone()),
            message,
        };
        let respond = AssertUnwindSafe(|| (self.respond)(&review, entry, &self.settings));
        let (decision, answer) = match catch_unwind(respond) {
            Ok(Ok(answered)) => answered,
            Ok(Err(AnswerError::Pod(shape))) => {
                let message = ReviewError::Pod(shape).to_string();
                return Err(refusal(Failure::Unreadable, StatusCode::BAD_REQUEST, message));
            }
            Ok(Err(error)) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return Err(refusal(Failure::Internal, status, error.to_string()));
            }
            Err(_) => {
                error!(uid = review.uid, "a review made the webhook panic; please report it");
                let message = "the webhook failed on this review; its log says more".to_owned();
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return Err(refusal(Failure::Internal, status, message));
            }
        };
        self.metrics.decided(entry, &decision);
        log(&review, entry, &decision);
        json(StatusCode::OK, &answer).map_err(|error| {
            refusal(Failure::Internal, StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        })
    }

    /// The response of a refusal: an AdmissionReview where a uid can be echoed, else plain text,
    /// which the API server shows to whoever created the pod.
    fn refused(&self, refusal: Refusal) -> Response {
        self.metrics.failed(refusal.failure);
        let Refusal { status, uid, message, .. } = refusal;
        let reason = if status.is_server_error() { "InternalError" } else { "BadRequest" };
        let review = uid.map(|uid| Answer::failure(uid, status.as_u16(), reason, message.clone()));
        let response = review.and_then(|review| json(status, &review).ok());
        response.unwrap_or_else(|| {
            let mut response = Response::new(Body::from(format!("{message}\n")));
            *response.status_mut() = status;
            let headers = response.headers_mut();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            if status == StatusCode::METHOD_NOT_ALLOWED {
                headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            response
        })
    }
}

/// Checks what stands before the body; its length, where it says one.
fn checked(request: &Request) -> Result<Option<usize>, Refusal> {
    let method = request.method();
    if method != Method::POST {
        let message = format!("{method} is no way to ask for a decision: POST an AdmissionReview");
        return Err(Refusal::new(Failure::Method, StatusCode::METHOD_NOT_ALLOWED, message));
    }
    let content = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::to_str);
    let kind = content.and_then(Result::ok).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = format!("the content type is {kind:?}: send application/json");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Refusal::new(Failure::ContentType, status, message));
    }
    let length = request.headers().get(header::CONTENT_LENGTH).map(HeaderValue::to_str);
    Ok(length.and_then(Result::ok).and_then(|length| length.parse().ok()))
}

fn json(status: StatusCode, answer: &Answer) -> Result<Response, serde_json::Error> {
    let mut response = Response::new(Body::from(serde_json::to_vec(answer)?));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// What the log keeps of a decision.
fn log(review: &Review, entry: Entry, decision: &Decision) {
    let (entry, uid, namespace) = (entry.as_str(), &review.uid, &review.namespace);
    match decision {
        Decision::Denied(denial) => {
            info!(entry, uid, dry_run = review.dry_run, "denied: {denial}");
        }
        Decision::Untouched(
            why @ (Untouched::NotAPod | Untouched::NotACreation | Untouched::Subresource),
        ) => warn!(
            entry,
            uid,
            reason = why.as_str(),
            "a review of {} {} {}: the registration asks for more than the creation of pods",
            review.operation,
            review.kind,
            review.subresource,
        ),
        Decision::Untouched(why) => {
            debug!(entry, uid, namespace, reason = why.as_str(), "untouched");
        }
        Decision::Managed(managed) => {
            debug!(entry, uid, namespace, done = managed.is_done(), "managed");
        }
    }
}
