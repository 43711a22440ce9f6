//! One request of the demo: what is asked, what carried it, what came back.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use it::backend::Note;
use it::client::{self, GrpcClient};
use it::trace::{Arrival, Tally, chain, virtual_host};

use crate::stage::{Caller, NAMESERVER};

const PATIENCE: Duration = Duration::from_secs(5);

/// What a caller does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// HTTP/1.1: GET this path.
    Get(&'static str),
    /// HTTP/2 without TLS: GET this path.
    H2c(&'static str),
    /// A WebSocket: says this and has it echoed.
    WebSocket(&'static str),
    /// gRPC: a unary call.
    Unary,
    /// gRPC: a stream of answers.
    Stream,
    /// Raw TCP: says this and reads as many bytes as it names.
    Say(&'static str, usize),
}

/// A request to this host and port, the host as the application spells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) host: &'static str,
    pub(crate) port: u16,
    pub(crate) kind: Kind,
    pub(crate) why: &'static str,
}

impl Ask {
    /// Makes the request from this caller's pod and prints what came of it.
    pub(crate) async fn make(self, caller: &Caller) -> Result<()> {
        let ip = resolve(caller, self.host).await?;
        let to = SocketAddr::new(ip, self.port);
        let (asked, protocol) = self.words();
        println!("{}/{} {asked}   ({})", caller.namespace, caller.name, self.why);
        match self.host.parse::<IpAddr>() {
            Ok(_) => println!("    asked      the application connects to {to}"),
            Err(_) => {
                println!("    asked      {} is {ip}: the application connects to {to}", self.host);
            }
        }
        let before = Tally::of(&caller.envoy).await?;
        let start = Instant::now();
        let answer = caller.pod.run(async move { self.act(to).await }).await?;
        let took = start.elapsed();
        let after = Tally::of(&caller.envoy).await?;

        let dump = caller.envoy.config_dump().await?;
        let listener = format!("capture_{}_{}", caller.namespace, caller.name);
        let chain = chain(&dump, &listener, Arrival { to, tls: false, protocol });
        let chain = chain.context("no chain takes this connection")?;
        let mut carried = format!("chain {chain}");
        if chain.starts_with("cap_http") {
            let table = format!("cap_http.{}", caller.namespace);
            let host = virtual_host(&dump, &table, self.host).context("no virtual host")?;
            let _ = write!(carried, ", virtual host {host}");
        }
        match before.to(&after).as_slice() {
            [] => carried.push_str("; nothing was sent on, the mesh answered itself"),
            used => {
                for used in used {
                    let (cluster, endpoint) = (&used.cluster, &used.endpoint);
                    let _ =
                        write!(carried, "\n               cluster {cluster}, endpoint {endpoint}");
                }
            }
        }
        println!("    carried by {carried}");
        println!("    answer     {answer}   ({took:.1?})\n");
        Ok(())
    }

    /// The request in a user's words, and what Envoy will make of its first bytes.
    fn words(&self) -> (String, Option<&'static str>) {
        let Self { host, port, .. } = self;
        match self.kind {
            Kind::Get(path) => (format!("GET http://{host}:{port}{path}"), Some("http/1.1")),
            Kind::H2c(path) => (format!("GET http://{host}:{port}{path} by HTTP/2"), Some("h2c")),
            Kind::WebSocket(text) => (format!("ws://{host}:{port} {text:?}"), Some("http/1.1")),
            Kind::Unary => (format!("gRPC {host}:{port} aether.it.Echo/Say"), Some("h2c")),
            Kind::Stream => (format!("gRPC {host}:{port} aether.it.Echo/Spread"), Some("h2c")),
            Kind::Say(text, _) => (format!("TCP {host}:{port} {text:?}"), None),
        }
    }

    async fn act(self, to: SocketAddr) -> Result<String> {
        let authority = format!("{}:{}", self.host, self.port);
        Ok(match self.kind {
            Kind::Get(path) => {
                // As browsers do, without a port where it is the scheme's own.
                let host = if self.port == 80 { self.host } else { &authority };
                let answer = client::get(to, host, path).await?;
                format!("{} {:?}", answer.status()?, answer.text().trim_end())
            }
            Kind::H2c(path) => {
                let mut h2c = client::H2c::connect(to).await?;
                let answer = h2c.get(&format!("http://{authority}{path}")).await?;
                format!("{} {:?}", answer.status, String::from_utf8_lossy(&answer.body).trim_end())
            }
            Kind::WebSocket(text) => {
                client::websocket(to, &authority, "/", &[text]).await?;
                format!("101, and {text:?} came back")
            }
            Kind::Unary => {
                let note =
                    GrpcClient::connect(to, &authority).await?.say(Note::new("hello", 7)).await?;
                format!("OK {note:?}")
            }
            Kind::Stream => {
                let mut grpc = GrpcClient::connect(to, &authority).await?;
                let notes = grpc.spread(Note::new("tick", 3)).await?;
                format!("OK, a stream of {} notes", notes.len())
            }
            Kind::Say(text, expect) => {
                let (bytes, first) = client::say(to, text.as_bytes(), expect).await?;
                format!("{:?}, the first byte after {first:.1?}", String::from_utf8_lossy(&bytes))
            }
        })
    }
}

/// Looks a name up as the application's libc would: by the pod's nameserver, along the search list of its namespace.
pub(crate) async fn resolve(caller: &Caller, host: &str) -> Result<IpAddr> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let namespace = caller.namespace;
    let search = [
        format!("{namespace}.svc.cluster.local"),
        "svc.cluster.local".into(),
        "cluster.local".into(),
    ];
    let mut names = vec![host.to_owned()];
    names.extend(search.iter().map(|domain| format!("{host}.{domain}")));
    for name in names {
        let asked = name.clone();
        let ask = async move { client::ask(NAMESERVER, &asked, false, PATIENCE).await };
        if let Some(ip) = caller.pod.run(ask).await?.addresses.first() {
            return Ok(*ip);
        }
    }
    bail!("no nameserver knows {host}")
}
