//! One replica or two, and other hands.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use it::eventually;
use k8s_openapi::ByteString;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, RBAC, SECONDS, SECRET, SOON, Stage};

/// The configuration without what is ours to write, and without what every write changes.
async fn others(stage: &Stage) -> Result<Value> {
    let mut object = serde_json::to_value(stage.configurations().get("aether").await?)?;
    for entry in object["webhooks"].as_array_mut().context("webhooks")? {
        entry["clientConfig"].as_object_mut().context("clientConfig")?.remove("caBundle");
    }
    let metadata = object["metadata"].as_object_mut().context("metadata")?;
    for changes in ["managedFields", "resourceVersion", "generation"] {
        metadata.remove(changes);
    }
    Ok(object)
}

#[tokio::test]
async fn from_nothing_to_an_admitted_pod_and_back_after_other_hands() -> Result<()> {
    let stage = Stage::start(RBAC).await?;
    let host = it::cluster::Claim::new(9444)?;
    let mut replica = stage.replica(host.address(), &[])?;
    let address = replica.address;
    // Without a registration it waits, and proxies are served meanwhile.
    replica.webhook(503, &["there is no MutatingWebhookConfiguration"], SOON).await?;
    replica.plane.readyz(200, &["snapshot: ready"], SOON).await?;
    stage.register(address).await?;
    let before = others(&stage).await?;
    replica.ready().await?;
    stage.admits("first").await?;
    let kept = stage.held("tls.crt").await?;
    ensure!(stage.bundles().await? == [kept.clone(), kept.clone()], "another bundle");

    // Nothing else of the configuration was touched, and what was is ours alone.
    ensure!(others(&stage).await? == before, "{before}");
    let object = stage.configurations().get("aether").await?;
    let fields = object.metadata.managed_fields.unwrap_or_default();
    let ours: Vec<_> =
        fields.iter().filter(|field| field.manager.as_deref() == Some("aether")).collect();
    ensure!(ours.len() == 1, "{fields:?}");
    let said = serde_json::to_string(&ours[0].fields_v1)?;
    ensure!(said.matches("f:caBundle").count() == 2 && !said.contains("f:rules"), "{said}");

    // A deleted Secret: the same authority comes back.
    stage.delete_secret().await?;
    let back = eventually("the Secret", SECONDS, || async {
        ensure!(stage.held("tls.crt").await? == kept, "another authority");
        Ok(())
    });
    back.await?;
    // One of garbage, one with a foreign key, one whose key is another's.
    let other = stage.held("tls.key").await?;
    let foreign = it::cluster::Authority::new("another")?;
    let own = foreign.serving(&["x"])?;
    for data in [
        json!({ "tls.crt": ByteString(b"garbage".to_vec()), "tls.key": ByteString(b"garbage".to_vec()) }),
        json!({ "ca.crt": ByteString(foreign.pem().into_bytes()) }),
        json!({ "tls.key": ByteString(own.key.clone().into_bytes()) }),
        json!({ "tls.crt": null, "tls.key": null }),
    ] {
        let patch = Patch::Merge(json!({ "data": data }));
        stage.secrets().patch(SECRET, &PatchParams::default(), &patch).await?;
        let back = eventually("the Secret's data", SECONDS, || async {
            let data = stage.secrets().get(SECRET).await?.data.unwrap_or_default();
            ensure!(data.len() == 2 && data["tls.crt"].0 == kept, "{:?}", data.keys());
            ensure!(data["tls.key"].0 == other, "another key");
            Ok(())
        });
        back.await?;
    }
    // An empty bundle, one of another authority, one that is none.
    let foreign = ByteString(foreign.pem().into_bytes());
    let bundle = |index, value: Value| {
        let path = format!("/webhooks/{index}/clientConfig/caBundle");
        json!([{ "op": "add", "path": path, "value": value }])
    };
    for (index, patch) in [
        (0, json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }])),
        (1, json!([{ "op": "remove", "path": "/webhooks/1/clientConfig/caBundle" }])),
        (0, bundle(0, json!(foreign))),
        (1, bundle(1, json!(foreign))),
        (1, bundle(1, json!(ByteString(b"none".to_vec())))),
    ] {
        let begun = Instant::now();
        stage.overwrite(&patch).await.with_context(|| format!("{patch}"))?;
        let back = eventually("the bundle", SECONDS, || async {
            ensure!(stage.bundles().await? == [kept.clone(), kept.clone()], "another bundle");
            Ok(())
        });
        back.await?;
        println!("bundle {index} was put right after {:?}", begun.elapsed());
    }
    ensure!(others(&stage).await? == before, "{before}");
    replica.ready().await?;
    stage.admits("second").await?;
    // A registration that is removed and comes back.
    stage.cluster.kubectl(&["delete", "mutatingwebhookconfiguration", "aether"], "").await?;
    replica.webhook(503, &["there is no MutatingWebhookConfiguration"], SECONDS).await?;
    stage.register(address).await?;
    replica.ready().await?;
    stage.admits("third").await?;

    // The Secret is lost, and so is everybody who remembers it: a new authority is begun, and the old one stays trusted.
    replica.plane.stop(SOON)?;
    stage.delete_secret().await?;
    replica.plane.restart()?;
    let begun = eventually("a new authority", SOON, || async {
        let next = stage.held("next.crt").await?;
        let expected = [next.clone(), kept.clone()].concat();
        ensure!(stage.bundles().await? == [expected.clone(), expected], "another bundle");
        Ok(())
    });
    begun.await?;
    replica.ready().await?;
    stage.admits("fourth").await?;
    let log = replica.plane.log();
    ensure!(!log.contains("PRIVATE") && !log.contains("panicked"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_permission_that_is_missing_is_said_by_name_and_used_when_it_is_granted() -> Result<()> {
    let (read, _) =
        RBAC.split_once("# The webhook's certificate").context("its part of the roles")?;
    let stage = Stage::start(read.trim_end().trim_end_matches("---")).await?;
    let host = it::cluster::Claim::new(9444)?;
    let replica = stage.replica(host.address(), &[])?;
    stage.register(replica.address).await?;
    let begun = Instant::now();
    let words = ["cannot be read", "secrets", "aether-webhook-ca", "Role aether-webhook"];
    replica.plane.says(&words, std::time::Duration::from_secs(5)).await?;
    println!("said after {:?}", begun.elapsed());
    replica.webhook(503, &["mutatingwebhookconfigurations", "cannot be read"], SECONDS).await?;
    // Proxies are served all the same.
    replica.plane.readyz(200, &["snapshot: ready"], SOON).await?;
    stage.cluster.apply(RBAC).await?;
    replica.ready().await?;
    stage.admits("granted").await?;
    // To read is not to write.
    let without = RBAC.replace("verbs: [get, list, watch, patch]", "verbs: [get, list, watch]");
    ensure!(without != RBAC);
    stage.cluster.apply(&without).await?;
    let empty = json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }]);
    stage.overwrite(&empty).await?;
    let words = ["the caBundle of", "cannot be written", "cannot patch", "Role aether-webhook"];
    replica.webhook(503, &words, SECONDS).await?;
    stage.cluster.apply(RBAC).await?;
    replica.ready().await?;
    stage.admits("again").await
}

#[tokio::test]
async fn with_a_folder_of_manifests_a_builtin_certificate_is_refused_with_the_way_out() -> Result<()>
{
    let folder = it::places::folder()?;
    let path = folder.path().to_str().context("a path")?.to_owned();
    let run = move || {
        it::aether::run(&[
            "serve",
            "--manifests",
            &path,
            "--webhook-address",
            "127.0.0.1:0",
            "--own-namespace",
            NAMESPACE,
        ])
    };
    let output = tokio::task::spawn_blocking(run).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains("use --webhook-cert-mode files"), "{said}");
    Ok(())
}
