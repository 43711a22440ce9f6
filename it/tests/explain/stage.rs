//! A mesh with a Service of each kind, and strangers beside it.

use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::backend::{Backend, Http1Backend, echo};
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::places;
use it::sidecar::Sidecar;
use it::world::{Object, ServedPort, served};
use serde_json::{Value, json};

/// Where all backends are.
const BACKENDS: &str = "10.244.9.1";
/// The endpoint of shop/ledger.
pub const TCP: &str = "10.244.9.1:9306";
/// The admin server, in the node's network.
pub const ADMIN: &str = "http://127.0.0.1:8080";
/// The pod of the headless Service.
const PEER: &str = "10.244.9.2";
/// Who is not in the mesh: a stranger, and the ClusterIPs of Services that are not captured.
const STRANGERS: [&str; 3] = ["198.51.100.7", "198.51.100.8", "198.51.100.9"];

type Served = (&'static str, &'static [&'static str], &'static [ServedPort<'static>]);

const SERVED: [Served; 7] = [
    ("shop/web", &["10.96.1.10", "fd00:10:96::1:10"], &[(80, "http", 8080), (8081, "", 8081)]),
    ("pay/web", &["10.96.2.10"], &[(80, "http", 8082)]),
    ("shop/mixed", &["10.96.1.12"], &[(80, "http", 8083), (9000, "tcp", 9000)]),
    ("shop/ledger", &["10.96.1.13"], &[(3306, "mysql", 9306)]),
    ("shop/empty", &["10.96.1.14"], &[(80, "http", 8084)]),
    ("shop/vacant", &["10.96.1.15"], &[(5000, "tcp", 5000)]),
    ("shop/peers", &["None"], &[(8080, "http", 8080)]),
];

/// Everything that runs. Dropped, all of it ends.
pub struct Stage {
    _http: Vec<Http1Backend>,
    _tcp: Vec<Backend>,
    mesh: Mesh,
    _pods: Vec<Pod>,
}

impl Stage {
    pub async fn set() -> Result<Self> {
        let net = Net::new()?;
        let (mut http, mut tcp, mut pods) = (Vec::new(), Vec::new(), Vec::new());
        let servers = net.pod_at(&[BACKENDS.parse()?])?;
        for (port, name) in [
            (8080, "shop/web:80"),
            (8081, "shop/web:8081"),
            (8082, "pay/web:80"),
            (8083, "shop/mixed:80"),
        ] {
            http.push(Http1Backend::named(servers.netns(), servers.at(port)?, name).await?);
        }
        for port in [9000, 9306] {
            tcp.push(echo(servers.netns(), servers.at(port)?).await?);
        }
        pods.push(servers);
        let peer = net.pod_at(&[PEER.parse()?])?;
        for port in [8080, 8099] {
            http.push(Http1Backend::named(peer.netns(), peer.at(port)?, "shop/peers").await?);
        }
        pods.push(peer);
        for ip in STRANGERS {
            let stranger = net.pod_at(&[ip.parse()?])?;
            http.push(Http1Backend::named(stranger.netns(), stranger.at(80)?, "stranger").await?);
            for port in [81, 6000] {
                tcp.push(echo(stranger.netns(), stranger.at(port)?).await?);
            }
            pods.push(stranger);
        }
        let redirect = Redirect::new(Mode::All).exclude_ports(6000..=6000);
        let mut plan = Plan::new(&["shop"], objects()?, redirect);
        plan.serve = &["--admin-address", "127.0.0.1:8080"];
        let mesh = Mesh::start(net, plan).await?;
        let stage = Self { _http: http, _tcp: tcp, mesh, _pods: pods };
        stage.exclude().await?;
        Ok(stage)
    }

    /// Says of the caller what its rules do: of an object in two files the later one counts.
    async fn exclude(&self) -> Result<()> {
        let addresses = ["10.244.0.101".parse()?, "fd00:10:244::101".parse()?];
        let pod = Object::pod("shop", "caller", "node", &addresses);
        let pod = pod.annotation("capture.aether.io/exclude-outbound-ports", "6000");
        self.mesh.world.put("later", &[pod])?;
        let told = || async {
            let told = self.explain("198.51.100.7:6000", "tcp")?;
            ensure!(told["paths"][0]["outcome"]["kind"] == "notCaptured", "{told:#}");
            Ok(())
        };
        it::eventually("the annotation", Duration::from_secs(20), told).await
    }

    pub fn caller(&self) -> &Sidecar {
        &self.mesh.callers[0]
    }

    /// How many connections have reached the capture listener.
    pub async fn downstream(&self) -> Result<u64> {
        self.caller().envoy.stat("listener.capture.downstream_cx_total").await
    }

    /// `aether explain` with these words, in the node's network.
    pub fn run(&self, words: &[&str]) -> Result<Output> {
        let program = places::program("aether")?;
        let mut command = self.mesh.net.node().command(&program.to_string_lossy());
        command.arg("explain").args(words).output().context("aether explain")
    }

    /// What the running server says.
    pub fn explain(&self, destination: &str, speaks: &str) -> Result<Value> {
        self.json(destination, speaks, &["--admin", ADMIN])
    }

    /// What the folder says.
    pub fn read(&self, destination: &str, speaks: &str) -> Result<Value> {
        let folder = self.mesh.world.path().display().to_string();
        self.json(destination, speaks, &["--manifests", &folder])
    }

    fn json(&self, destination: &str, speaks: &str, how: &[&str]) -> Result<Value> {
        let mut words = vec!["--pod", "shop/caller", destination, "--speaks", speaks, "--json"];
        words.extend(how);
        let done = self.run(&words)?;
        ensure!(done.status.success(), "{destination}: {done:?}");
        Ok(serde_json::from_slice(&done.stdout)?)
    }
}

fn objects() -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for (key, ips, ports) in SERVED {
        let at = if key == "shop/peers" { PEER } else { BACKENDS };
        let [service, slice] = served(key, ips, ports, at.parse()?)?;
        objects.push(match key {
            "pay/web" => service.with(&["metadata", "creationTimestamp"], "2026-02-01T00:00:00Z"),
            _ => service,
        });
        objects.push(match key {
            "shop/empty" | "shop/vacant" => slice
                .with(&["endpoints"], json!([]))
                .endpoint_that(at.parse()?, &json!({"ready": false, "serving": false})),
            _ => slice,
        });
    }
    let legacy = Object::service("shop", "legacy", STRANGERS[1]).port("web", 80, "http");
    objects.push(legacy.label("aether.io/mesh-service", "false"));
    let broken = Object::service("shop", "broken", STRANGERS[2]).port("web", 80, "http");
    objects.push(broken.annotation("aether.io/port", "0"));
    let external = Object::service("shop", "external", "").with(&["spec", "type"], "ExternalName");
    objects.push(
        external.with(&["spec"], json!({"type": "ExternalName", "externalName": "nobody.example"})),
    );
    Ok(objects)
}
