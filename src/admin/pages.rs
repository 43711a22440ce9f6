//! Pages that other parts add: questions about their state, answered in JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

/// How many pages are made at a time: they are for people, and each may be some megabytes.
const AT_A_TIME: usize = 2;

/// What stands behind the `?` of a request, decoded; of a name that stands twice, the last.
pub type Asked = BTreeMap<String, String>;

/// Why a page cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPage {
    /// The question is wrong; the words say how to ask.
    Wrong(String),
    /// There is no such thing.
    Absent(String),
    /// Not now.
    NotYet(String),
    /// It is our fault.
    Failed(String),
}

type Make = dyn Fn(&Asked) -> Result<Vec<u8>, NoPage> + Send + Sync;

struct Page {
    path: &'static str,
    usage: &'static str,
    make: Arc<Make>,
}

/// The pages. Each path is there once.
#[derive(Default)]
pub struct Pages(Vec<Page>);

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|page| page.path)).finish()
    }
}

impl Pages {
    /// Adds a page: `usage` is how the index shows it, `make` gives its JSON. It may take its time,
    /// since it is not called where anything else waits.
    #[must_use]
    pub fn with(
        mut self,
        path: &'static str,
        usage: &'static str,
        make: impl Fn(&Asked) -> Result<Vec<u8>, NoPage> + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Page { path, usage, make: Arc::new(make) });
        self
    }

    /// The lines of the index.
    pub(super) fn index(&self) -> String {
        let lines = self.0.iter().flat_map(|page| [page.usage, "\n"]);
        lines.collect()
    }

    /// The routes.
    pub(super) fn router(self) -> Router {
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        self.0.into_iter().fold(Router::new(), |router, page| {
            let (make, turns) = (page.make, turns.clone());
            let answer =
                move |Query(asked): Query<Asked>| answer(make.clone(), turns.clone(), asked);
            router.route(page.path, get(answer))
        })
    }
}

async fn answer(make: Arc<Make>, turns: Arc<Semaphore>, asked: Asked) -> Response {
    // It is never closed.
    let _turn = turns.acquire_owned().await;
    let made = tokio::task::spawn_blocking(move || make(&asked)).await;
    match made.unwrap_or_else(|error| Err(NoPage::Failed(error.to_string()))) {
        Ok(json) => {
            let content_type = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, content_type)], json).into_response()
        }
        Err(no) => no.into_response(),
    }
}

impl IntoResponse for NoPage {
    fn into_response(self) -> Response {
        let (status, words) = match self {
            Self::Wrong(words) => (StatusCode::BAD_REQUEST, words),
            Self::Absent(words) => (StatusCode::NOT_FOUND, words),
            Self::NotYet(words) => (StatusCode::SERVICE_UNAVAILABLE, words),
            Self::Failed(words) => (StatusCode::INTERNAL_SERVER_ERROR, words),
        };
        (status, format!("{words}\n")).into_response()
    }
}
