//! A webhook that allows everything and remembers what it was asked.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use it::cluster::{Authority, Serving};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// A webhook on a port of loopback, until it is dropped.
pub struct Webhook {
    /// For `clientConfig.url`.
    pub url: String,
    /// For `clientConfig.caBundle`.
    pub bundle: Vec<u8>,
    asked: Arc<Mutex<Vec<Value>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Webhook {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mutate", listener.local_addr().unwrap());
        let authority = Authority::new("a webhook's").unwrap();
        let asked = Arc::default();
        let acceptor = acceptor(authority.serving(&["127.0.0.1"]).unwrap());
        let serving = tokio::spawn(serve(listener, acceptor, Arc::clone(&asked)));
        let bundle = authority.pem().into_bytes();
        Self { url, bundle, asked, _serving: AbortOnDropHandle::new(serving) }
    }

    /// The last review that it was sent.
    pub fn last(&self) -> Option<Value> {
        self.asked.lock().unwrap().last().cloned()
    }
}

fn acceptor(serving: Serving) -> TlsAcceptor {
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(serving.der)], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, asked: Arc<Mutex<Vec<Value>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        let asked = Arc::clone(&asked);
        let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
            let asked = Arc::clone(&asked);
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                let answer = json!({
                    "apiVersion": "admission.k8s.io/v1",
                    "kind": "AdmissionReview",
                    "response": {"uid": review["request"]["uid"], "allowed": true},
                });
                asked.lock().unwrap().push(review);
                let answer = Full::<Bytes>::from(answer.to_string());
                hyper::Result::Ok(http::Response::new(answer))
            }
        });
        let http = hyper::server::conn::http1::Builder::new();
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
    }
}
