//! Questions to the admin server of a process that runs.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;

/// How long a connection may take, and how long the whole of an answer.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes.
const LARGEST: usize = 256 << 20;

/// The URL of an admin server: the `--admin-address` of a running `aether serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminUrl(Uri);

impl FromStr for AdminUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write http://127.0.0.1:8080, or an address and a port".to_owned();
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = whole.parse().map_err(|error| format!("{error}: {}", form()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(format!("the admin server speaks plain HTTP: {}", form())),
            _ => return Err(form()),
        }
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if !bare || uri.host().is_none_or(str::is_empty) {
            return Err(format!("the URL of the server as a whole is needed: {}", form()));
        }
        Ok(Self(uri))
    }
}

/// The server answers, and refuses.
#[derive(Debug, thiserror::Error)]
#[error(
    "{page} answers {status}: {words}; is this the --admin-address of an `aether serve` of this version?"
)]
pub struct Refused {
    /// What was asked for.
    page: String,
    /// The status of the answer.
    pub status: StatusCode,
    /// Its first words.
    pub words: String,
}

impl AdminUrl {
    /// Asks for a path, with its query if it has one, and reads the JSON of the answer.
    ///
    /// # Errors
    /// Where nothing listens there, where it is not an `aether`, or where it refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let at = self.0.to_string();
        let at = at.trim_end_matches('/');
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asked = runtime.block_on(async { tokio::time::timeout(ANSWER, ask(at, path)).await });
        let asked = asked.with_context(|| format!("{at} has not answered within {ANSWER:?}"))?;
        let (status, body) = asked?;
        let strange = "is this the --admin-address of an `aether serve` of this version?";
        if status != StatusCode::OK {
            let words = String::from_utf8_lossy(&body);
            let words: String = words.trim().chars().take(500).collect();
            bail!(Refused { page: format!("{at}{path}"), status, words });
        }
        serde_json::from_slice(&body)
            .with_context(|| format!("the answer of {at}{path}; {strange}"))
    }
}

async fn ask(at: &str, path: &str) -> Result<(StatusCode, Vec<u8>)> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT));
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(format!("{at}{path}")).body(Empty::<bytes::Bytes>::new())?;
    let answer = client.request(request).await.with_context(|| {
        format!(
            "{at} does not answer: does `aether serve` run there, with that --admin-address? \
             --admin names another"
        )
    })?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("{at}{path}: {error}"))?;
    Ok((status, body.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::AdminUrl;

    #[test]
    fn a_url_may_be_an_address_alone_and_no_page() {
        for (text, uri) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("aether.aether-system.svc:8080", "http://aether.aether-system.svc:8080/"),
        ] {
            assert_eq!(text.parse::<AdminUrl>().unwrap().0, uri, "{text}");
        }
        for text in
            ["", "https://127.0.0.1:8080", "ftp://a", "http://a:8080/nodes", "a:8080?b", "a b"]
        {
            let error = text.parse::<AdminUrl>().unwrap_err();
            assert!(error.contains("http://127.0.0.1:8080"), "{text}: {error}");
        }
    }
}
