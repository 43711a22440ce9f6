//! The server as it stands on a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::sync::oneshot;

use super::*;

struct Served {
    address: SocketAddr,
    client: Arc<ClientConfig>,
    stop: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Serves with a certificate of its own, and knows how to trust it.
fn served(webhook: Arc<Webhook>, drain: Duration) -> Served {
    let pair = rcgen::generate_simple_self_signed(vec!["webhook.test".to_owned()]).unwrap();
    let der = pair.cert.der().clone();
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = CertifiedKey::from_der(vec![der.clone()], key, &provider).unwrap();
    let tls = tls(Arc::new(SingleCertAndKey::from(key))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(der).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let ended = tokio::spawn(serve(listener, tls, webhook, stopped, drain));
    Served { address, client: Arc::new(client), stop: Some(stop), ended }
}

/// One request over HTTP/1.1 on a connection of its own; the whole answer.
fn request(address: SocketAddr, client: Arc<ClientConfig>, text: &str) -> std::io::Result<String> {
    let socket = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let name = ServerName::try_from("webhook.test").unwrap();
    let connection = ClientConnection::new(client, name).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(answer),
    }
}

impl Served {
    async fn ask(&self, body: &str) -> std::io::Result<String> {
        let head = "POST /mutate?timeout=5s HTTP/1.1\r\nHost: webhook.test\r\nConnection: close\r\nContent-Type: application/json";
        let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let (address, client) = (self.address, self.client.clone());
        tokio::task::spawn_blocking(move || request(address, client, &text)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_over_tls_is_answered() {
    let (webhook, _) = webhook(Limits::default());
    let served = served(webhook, Duration::ZERO);
    let answer = served.ask(&managed().to_string()).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"uid\":\"the-uid\""),
        "{answer}"
    );
    // Who speaks no TLS, or trusts another, gets nothing.
    let address = served.address;
    let plain = tokio::task::spawn_blocking(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.write_all(b"POST /mutate HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    assert!(!plain.await.unwrap().contains("HTTP"));
    // And the server still answers.
    assert!(served.ask(&managed().to_string()).await.unwrap().starts_with("HTTP/1.1 200"));
}

/// A replica that ends is still called until its Service has forgotten it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_drains_first() {
    let (webhook, _) = webhook(Limits::default());
    let mut served = served(webhook, Duration::from_secs(1));
    assert!(served.ask(&managed().to_string()).await.is_ok());
    served.stop.take().unwrap().send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = served.ask(&managed().to_string()).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let ended = tokio::time::timeout(Duration::from_secs(5), &mut served.ended).await;
    ended.unwrap().unwrap().unwrap();
    assert!(served.ask(&managed().to_string()).await.is_err());
}
