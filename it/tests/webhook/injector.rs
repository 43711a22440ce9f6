//! A second injector, which runs before ours or after it and wants to be first just as much.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use it::cluster::Serving;
use k8s_openapi::ByteString;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::audit::{Call, calls, ours};
use crate::stage::{Stage, inits, pod, pod_with};

/// What it does to a pod: an init container in front of all, a volume at the end; nothing where its container is.
fn operations(pod: &Value) -> Value {
    if inits(pod).contains(&"other") {
        return json!([]);
    }
    let container = json!({ "name": "other", "image": "other:1" });
    let init = if inits(pod).is_empty() {
        json!({ "op": "add", "path": "/spec/initContainers", "value": [container] })
    } else {
        json!({ "op": "add", "path": "/spec/initContainers/0", "value": container })
    };
    json!([init])
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let patch = ByteString(serde_json::to_vec(&operations(&review["request"]["object"])).unwrap());
    let response = json!({ "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
    let json = Response::builder().header("content-type", "application/json");
    Ok(json.body(Full::new(review.to_string().into())).unwrap())
}

/// Serves it on loopback; the task ends with the runtime.
async fn serve(serving: &Serving) -> SocketAddr {
    let chain = CertificateDer::pem_slice_iter(serving.certificate.as_bytes())
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(socket).await else { return };
                let http = Builder::new(TokioExecutor::new());
                let _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    });
    address
}

/// Registers it under a name, which says when it is called: the API server goes by the alphabet.
async fn register(stage: &Stage, name: &str, address: SocketAddr, policy: &str) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": name },
        "webhooks": [{
            "name": format!("{name}.example.com"),
            "clientConfig": { "url": format!("https://{address}/"), "caBundle": ByteString(stage.authority.pem().into_bytes()) },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
            "namespaceSelector": { "matchLabels": { "injector": name } },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "reinvocationPolicy": policy,
            "failurePolicy": "Fail",
        }],
    });
    stage.cluster.apply(&configuration.to_string()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ours_is_first_whoever_comes_before_or_after() {
    let stage = Stage::start(&[]).await;
    let serving = stage.authority.serving(&["127.0.0.1"]).unwrap();
    let address = serve(&serving).await;
    for (name, policy) in [
        ("a-before", "Never"),
        ("b-before", "IfNeeded"),
        ("y-after", "Never"),
        ("z-after", "IfNeeded"),
    ] {
        register(&stage, name, address, policy).await;
        stage.namespace(name, json!({ "aether.io/managed": "true", "injector": name })).await;
        // The registration is known once a pod has the other's container.
        let ask = || async {
            let probe =
                pod(&format!("probe-{}", fastrand::u32(..)), json!({ "aether.io/managed": "no" }));
            let stored = stage.create(name, &probe).await?;
            anyhow::ensure!(inits(&stored) == ["other"], "it is not called yet");
            Ok(())
        };
        it::eventually("the other injector", std::time::Duration::from_secs(30), ask)
            .await
            .unwrap();
        for (index, spec) in [
            json!({}),
            json!({ "automountServiceAccountToken": false }),
            json!({ "initContainers": [{ "name": "own", "image": "o" }, { "name": "proxy", "image": "p", "restartPolicy": "Always" }] }),
        ]
        .into_iter()
        .enumerate()
        {
            let asked = pod_with(&format!("pod-{index}"), json!({}), &spec);
            let stored = stage.create(name, &asked).await.unwrap();
            let own: &[&str] = if index == 2 { &["own", "proxy"] } else { &[] };
            let expected: Vec<&str> = ["aether-identity-ready", "other"].into_iter().chain(own.iter().copied()).collect();
            let event = stage.audit.created(name, &format!("pod-{index}")).await;
            assert_eq!(inits(&stored), expected, "{name}: {:?}", calls(&event));
            // At most one more review, whoever changed what.
            let ours = ours(&event);
            let again: Vec<&Call> = ours.iter().filter(|call| call.round == 1).collect();
            assert!(ours.len() <= 2 && again.len() <= 1, "{name}: {ours:?}");
            assert!(ours.iter().all(|call| call.entry == "namespaces.aether.io"), "{name}: {ours:?}");
            // The one that comes after put itself in front, and the second review put it right.
            if name.ends_with("after") {
                assert!(again.iter().all(|call| call.mutated), "{name}: {ours:?}");
                assert_eq!(again.len(), 1, "{name}: {ours:?}");
            }
        }
    }
}
