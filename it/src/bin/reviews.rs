//! Measures the webhook: reviews of a pod of 50 kB, at a fixed rate, over one HTTP/2 connection as the API server
//! keeps one. A release build, please:
//!
//! ```text
//! cargo build --release --workspace --bins
//! target/release/reviews --rate 1000
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use it::cluster::{Authority, Claim};
use it::process::{Process, Spec};
use it::{eventually, places};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// Measure the webhook, pinned to one processor.
#[derive(Debug, Parser)]
struct Arguments {
    /// Reviews a second.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// For how many seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// The pod's size in bytes.
    #[arg(long, default_value_t = 50_000)]
    size: usize,
    /// The webhook's processor; the client may use the others.
    #[arg(long, default_value_t = 0)]
    processor: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = places::folder()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let authority = Authority::new("the webhook's")?;
    let (webhook, admin) = (Claim::new(9443)?, Claim::new(8080)?);
    let serving = authority.serving(&["localhost"])?;
    std::fs::write(path("tls.crt"), &serving.certificate)?;
    std::fs::write(path("tls.key"), &serving.key)?;
    std::fs::create_dir(path("manifests"))?;
    let program = places::program("aether")?.display().to_string();
    let (webhook, admin) = (webhook.address(), admin.address());
    let line = format!(
        "-c {} {program} serve --manifests {} --xds-address none --xds-socket {} --admin-address {admin} \
         --webhook-address {webhook} --webhook-drain 0 --webhook-cert-mode files --webhook-cert {} --webhook-key {} \
         --identity-gate-image registry.example/aether:1",
        arguments.processor,
        path("manifests"),
        path("xds.sock"),
        path("tls.crt"),
        path("tls.key"),
    );
    let spec = Spec::new(Path::new("taskset"), line.split_whitespace(), Path::new(&path("log")));
    let mut aether = Process::start(&spec)?;
    let connect = || connect(webhook, authority.der());
    let client = eventually("the webhook", Duration::from_secs(30), connect).await?;
    aether.must_run()?;

    let review = Bytes::from(review(arguments.size).to_string());
    println!("a review has {} bytes", review.len());
    let answer = ask(client.clone(), review.clone()).await?;
    ensure!(answer.get("patch").is_some(), "the pod is not patched: {answer}");
    let before = processor_time(aether.id())?;
    let start = Instant::now();
    let mut latencies = run(&arguments, &client, &review).await?;
    let took = start.elapsed().as_secs_f64();
    let spent = processor_time(aether.id())? - before;
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let place = (count as f64 * share) as usize;
        latencies.get(place.min(count - 1)).copied().unwrap_or_default()
    };
    println!("{count} reviews in {took:.1} s; seen by the client, from when each was due:");
    println!("  median {:?}, 99 of 100 within {:?}, the longest {:?}", at(0.5), at(0.99), at(1.0));
    #[allow(clippy::cast_precision_loss)]
    let each = spent / count as f64 * 1e6;
    println!("the webhook's processor time: {spent:.2} s, {each:.0} µs a review");
    println!("the webhook's own clock:");
    for line in metrics(admin)
        .await?
        .lines()
        .filter(|line| line.starts_with("aether_webhook_duration_seconds"))
    {
        println!("  {line}");
    }
    Ok(())
}

/// Sends reviews at their times, whether or not those before are answered; the time that each took.
async fn run(
    arguments: &Arguments,
    client: &SendRequest<Full<Bytes>>,
    review: &Bytes,
) -> Result<Vec<Duration>> {
    let (done, mut taken) = mpsc::unbounded_channel();
    let total = arguments.rate * arguments.seconds;
    let start = Instant::now() + Duration::from_millis(100);
    for index in 0..total {
        let due = start + Duration::from_secs(1) * index / arguments.rate;
        tokio::time::sleep_until(due).await;
        let (client, review, done) = (client.clone(), review.clone(), done.clone());
        tokio::spawn(async move {
            let answer = ask(client, review).await;
            let _ = done.send(answer.map(|_| due.elapsed()));
        });
    }
    drop(done);
    let mut latencies = Vec::new();
    while let Some(latency) = taken.recv().await {
        latencies.push(latency?);
    }
    Ok(latencies)
}

/// The response to a review.
async fn ask(mut client: SendRequest<Full<Bytes>>, review: Bytes) -> Result<Value> {
    let request = Request::post("https://localhost/mutate?timeout=5s")
        .header("content-type", "application/json");
    let response = client.send_request(request.body(Full::new(review))?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    let mut answer: Value = serde_json::from_slice(&body)?;
    Ok(answer.get_mut("response").map(Value::take).unwrap_or_default())
}

async fn connect(
    address: std::net::SocketAddr,
    authority: Vec<u8>,
) -> Result<SendRequest<Full<Bytes>>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(authority))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("localhost")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The text of `/metrics`.
async fn metrics(address: std::net::SocketAddr) -> Result<String> {
    let socket = TcpStream::connect(address).await?;
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    let request = Request::get("/metrics")
        .header("host", address.to_string())
        .body(Full::<Bytes>::default())?;
    let body = client.send_request(request).await?.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec())?)
}

/// The processor time of a process so far, in seconds, by proc(5).
fn processor_time(id: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let (_, fields) = text.rsplit_once(')').context("stat without a name")?;
    let ticks: Vec<u32> =
        fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(f64::from(ticks.iter().sum::<u32>()) / 100.0)
}

/// A review of a pod of about this many bytes, which is what a pod of a large chart looks like: many variables, a few
/// containers, and the managed fields of each.
fn review(size: usize) -> Value {
    let mut env = Vec::new();
    let mut fields = serde_json::Map::new();
    let mut bytes = 2_000;
    for index in 0.. {
        if bytes >= size {
            break;
        }
        let name = format!("SETTING_NUMBER_{index}");
        let key = format!("k:{{\"name\":\"{name}\"}}");
        env.push(json!({ "name": name, "value": format!("the value of a setting, with <some> text & {index}") }));
        fields.insert(key, json!({ ".": {}, "f:name": {}, "f:value": {} }));
        bytes += 185;
    }
    let container = |name: &str, env: &Value| {
        json!({
            "name": name, "image": format!("registry.example/{name}:1"), "env": env, "imagePullPolicy": "IfNotPresent",
            "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "64Mi" } },
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        })
    };
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": { "group": "", "version": "v1", "kind": "Pod" },
            "resource": { "group": "", "version": "v1", "resource": "pods" },
            "namespace": "shop",
            "operation": "CREATE",
            "userInfo": { "username": "system:serviceaccount:kube-system:replicaset-controller" },
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "generateName": "web-7d9f4d5b9-",
                    "labels": { "app": "web", "aether.io/managed": "true" },
                    "managedFields": [{ "manager": "kube-controller-manager", "fieldsV1": fields }],
                },
                "spec": { "containers": [container("web", &json!(env)), container("log", &json!([]))], "dnsPolicy": "ClusterFirst" },
            },
            "dryRun": false,
        },
    })
}
