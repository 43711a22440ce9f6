//! The same objects make the same mesh, whether they come from an API server or from a folder: what is in the folder
//! is what kubectl reads from the API server.

use std::collections::BTreeSet;
use std::process::Output;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::stage::{SOON, Stage};

/// The contract's table of labels and annotations, right and wrong values, and Services of every shape.
const TABLE: &str = include_str!("table.yaml");

/// The findings that these objects lead to, each by severity, reason and object.
const FOUND: [&str; 20] = [
    "problem ConflictingKey Service shop/twin",
    "problem InvalidValue EndpointSlice shop/odd-1",
    "problem InvalidValue Pod shop/badly",
    "problem InvalidValue Pod shop/badly",
    "problem InvalidValue Service shop/dotted",
    "problem InvalidValue Service shop/foreign",
    "problem InvalidValue Service shop/no-port",
    "problem InvalidValue Service shop/upper",
    "problem LostShortName Service pay/web",
    "problem NotSupported EndpointSlice shop/named",
    "warning NotCaptured Service kube-system/dns",
    "warning NotCaptured Service shop/external",
    "warning NotCaptured Service shop/headless",
    "warning NotCaptured Service shop/mixed",
    "warning NotCaptured Service shop/udp",
    "warning NotSupported Service shop/sticky",
    "warning Suspicious Pod shop/scoped",
    "warning Suspicious Service shop/secure",
    "warning Unmanaged Pod pay/bare",
    "warning Unmanaged Pod pay/till",
];

fn aether(line: &str, kubeconfig: Option<&str>, folder: Option<&str>) -> Result<Output> {
    let mut args: Vec<&str> = line.split(' ').collect();
    args.extend(kubeconfig.into_iter().flat_map(|file| ["--kubeconfig", file]));
    args.extend(folder.into_iter().flat_map(|folder| ["--manifests", folder]));
    it::aether::run(&args)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_objects_make_the_same_mesh() -> Result<()> {
    let stage = Stage::new().await?;
    stage.cluster.apply(TABLE).await?;
    let kinds = "ns,nodes,sa,svc,endpointslices,pods";
    let dump = stage.cluster.kubectl(&["get", kinds, "-A", "-o", "yaml"], "").await?;
    let folder = it::places::folder()?;
    std::fs::write(folder.path().join("dump.yaml"), dump)?;
    let folder = folder.path().to_str().unwrap();
    let kubeconfig = stage.kubeconfig()?;
    let kubeconfig = kubeconfig.to_str().unwrap();

    for node in ["pod/shop/caller", "pod/shop/scoped"] {
        let line = format!("render --node {node}");
        let by_server = aether(&line, Some(kubeconfig), None)?;
        let by_folder = aether(&line, None, Some(folder))?;
        ensure!(by_server.status.success(), "{}", String::from_utf8_lossy(&by_server.stderr));
        ensure!(by_server.stdout == by_folder.stdout, "{node}: what is rendered differs");
    }

    let by_server = aether("check --json", Some(kubeconfig), None)?;
    let by_folder = aether("check --json", None, Some(folder))?;
    ensure!(by_server.status.code() == Some(1), "{by_server:?}");
    let (by_server, by_folder) = (findings(&by_server)?, findings(&by_folder)?);
    ensure!(by_server == by_folder, "{by_server:#?}\n{by_folder:#?}");
    let found = by_server.iter().map(|finding| {
        let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {} {}/{}",
            text("severity"),
            text("reason"),
            text("kind"),
            text("namespace"),
            text("name")
        )
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    ensure!(found == FOUND, "{found:#?}");

    // Who serves finds the same, but for the pods that are not in the mesh, which it does not follow.
    for finding in &by_server {
        let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        if text("reason") == "Unmanaged" {
            continue;
        }
        let object = format!("{} {}/{}", text("kind"), text("namespace"), text("name"));
        stage.plane.says(&[&text("reason"), &object, &text("message")], SOON).await?;
    }
    Ok(())
}

/// What has no value where a text belongs has an empty one, to an API server and so to a folder.
const NULLS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: nulls }
---
apiVersion: v1
kind: Service
metadata:
  { name: port, namespace: nulls, labels: { aether.io/mesh-service: "true", app: null }, annotations: { aether.io/port: null } }
spec: { ports: [{ port: 80, name: null }], selector: { app: null } }
---
apiVersion: v1
kind: Service
metadata:
  { name: name, namespace: nulls, labels: { aether.io/mesh-service: "true" }, annotations: { aether.io/service: ~ } }
spec: { ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Service
metadata:
  { name: none, namespace: nulls, labels: { aether.io/mesh-service: null }, annotations: { aether.io/service: ~ } }
spec: { ports: [{ port: 80 }] }
"#;

#[tokio::test]
async fn a_null_is_the_empty_text_that_an_api_server_makes_of_it() -> Result<()> {
    let stage = Stage::new().await?;
    stage.cluster.kubectl(&["create", "-f", "-"], NULLS).await?;
    let read = ["get", "service", "port", "-n", "nulls", "-o", "json"];
    let stored: Value = serde_json::from_str(&stage.cluster.kubectl(&read, "").await?)?;
    for pointer in
        ["/metadata/labels/app", "/metadata/annotations/aether.io~1port", "/spec/selector/app"]
    {
        ensure!(stored.pointer(pointer) == Some(&Value::from("")), "{pointer}: {stored}");
    }
    let folder = it::places::folder()?;
    std::fs::write(folder.path().join("nulls.yaml"), NULLS)?;
    let kubeconfig = stage.kubeconfig()?;
    let by_server = findings(&aether("check --json", kubeconfig.to_str(), None)?)?;
    let by_folder = findings(&aether("check --json", None, folder.path().to_str())?)?;
    let ours = |all: Vec<Value>| -> Vec<Value> {
        all.into_iter().filter(|finding| finding["namespace"] == "nulls").collect()
    };
    let (by_server, by_folder) = (ours(by_server), ours(by_folder));
    ensure!(by_server == by_folder, "{by_server:#?}\n{by_folder:#?}");
    let wrong: Vec<_> =
        by_server.iter().filter(|found| found["reason"] == "InvalidValue").collect();
    ensure!(wrong.len() == 2, "{by_server:#?}");
    Ok(())
}

#[tokio::test]
async fn two_replicas_serve_equal_bytes_and_versions() -> Result<()> {
    let stage = Stage::new().await?;
    stage.cluster.apply(TABLE).await?;
    let second = it::plane::Plane::start(&stage.kubeconfig()?, &[])?;
    second.says(&["xDS on a Unix socket"], SOON).await?;
    second.readyz(200, &["source: ready"], SOON).await?;
    let stream = it::delta::Stream::open(second.socket(), crate::stage::CALLER).await?;
    // One has seen the objects come one by one, the other all at once.
    for octet in 80..90 {
        stage.follows(octet, SOON).await?;
    }
    let alike = it::eventually("equal resources", SOON, || async {
        let (one, other) = (stage.stream.now().resources, stream.now().resources);
        ensure!(one.len() > 40, "only {}", one.len());
        ensure!(one == other, "{} and {} resources", one.len(), other.len());
        Ok(())
    });
    alike.await
}

/// The findings, without the place in a file.
fn findings(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: BTreeSet<_> = text.lines().collect();
    let mut all = Vec::new();
    for line in lines {
        let mut finding: Value = serde_json::from_str(line)?;
        finding["origin"] = Value::Null;
        all.push(finding);
    }
    all.sort_by_key(ToString::to_string);
    Ok(all)
}
