//! What `explain` says of a connection is what a real Envoy does with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "explain/stage.rs"]
mod stage;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::client;
use it::trace::Tally;
use serde_json::Value;
use stage::{Stage, TCP};

/// How long a client that gets nothing waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A destination, what is spoken, where its connection goes, and what is said of its end.
type Asked = (&'static str, &'static str, &'static str, &'static str);

const ASKED: &[Asked] = &[
    ("web.shop.svc.cluster.local", "http", "10.96.1.10:80", "service"),
    ("web.shop", "http", "10.96.1.10:80", "service"),
    ("web", "http", "10.96.1.10:80", "service"),
    ("web.aether.internal", "http", "10.96.1.10:80", "service"),
    ("web.pay.aether.internal", "http", "10.96.2.10:80", "service"),
    ("web:8081", "http", "10.96.1.10:8081", "service"),
    ("web:18081", "http", "10.96.1.10:18081", "service"),
    ("web:9999", "http", "10.96.1.10:9999", "answered"),
    ("10.96.1.10", "http", "10.96.1.10:80", "service"),
    ("[fd00:10:96::1:10]", "http", "[fd00:10:96::1:10]:80", "service"),
    ("mixed", "http", "10.96.1.12:80", "service"),
    ("mixed:9000", "tcp", "10.96.1.12:9000", "service"),
    ("ledger:3306", "tcp", "10.96.1.13:3306", "service"),
    ("10.96.1.13:18081", "tcp", "10.96.1.13:18081", "service"),
    ("10.96.1.13:3307", "tcp", "10.96.1.13:3307", "closed"),
    ("empty", "http", "10.96.1.14:80", "service"),
    ("vacant:5000", "tcp", "10.96.1.15:5000", "service"),
    ("peers:8080", "http", "10.244.9.2:8080", "service"),
    ("peers:8099", "http", "10.244.9.2:8099", "passthrough"),
    ("nobody.example", "http", "198.51.100.7:80", "passthrough"),
    ("198.51.100.7:81", "tcp", "198.51.100.7:81", "passthrough"),
    ("legacy", "http", "198.51.100.8:80", "passthrough"),
    ("broken", "http", "198.51.100.9:80", "passthrough"),
    ("external", "http", "198.51.100.7:80", "passthrough"),
    ("198.51.100.7:6000", "tcp", "198.51.100.7:6000", "notCaptured"),
];

#[tokio::test]
async fn what_is_told_is_what_envoy_does() -> Result<()> {
    let stage = Stage::set().await?;
    for (destination, speaks, to, kind) in ASKED {
        let told = stage.explain(destination, speaks)?;
        let outcome = told.pointer("/paths/0/outcome").context("it has an end")?;
        let context = || format!("{destination} {speaks}: {outcome:#}");
        ensure!(outcome["kind"] == *kind, "{}", context());
        let before = Tally::of(&stage.caller().envoy).await?;
        let downstream = stage.downstream().await?;
        let got = exchange(&stage, destination, speaks, to.parse()?).await?;
        let after = Tally::of(&stage.caller().envoy).await?;
        let used = before.to(&after);
        let captured = stage.downstream().await? > downstream;
        ensure!(captured == (*kind != "notCaptured"), "captured: {captured}; {}", context());
        held(outcome, &used, &got, to).with_context(context)?;
    }
    Ok(())
}

/// What a client got: the status and body of an answer, or whether bytes came at all.
#[derive(Debug)]
enum Got {
    Answer(u16, String),
    Bytes(bool),
}

async fn exchange(stage: &Stage, destination: &str, speaks: &str, to: SocketAddr) -> Result<Got> {
    if speaks == "http" {
        let answer = stage.caller().get(to, destination).await?;
        return Ok(Got::Answer(answer.status()?, answer.text()));
    }
    let say = async move {
        let said = tokio::time::timeout(PATIENCE, client::say(to, b"hi\r\n", 1)).await;
        Ok(matches!(said, Ok(Ok(_))))
    };
    Ok(Got::Bytes(stage.caller().pod.run(say).await?))
}

/// Holds what was told against what was used and what came.
fn held(outcome: &Value, used: &[it::trace::Used], got: &Got, to: &str) -> Result<()> {
    let text = |field: &str| outcome[field].as_str().unwrap_or_default();
    match outcome["kind"].as_str().unwrap_or_default() {
        "service" => {
            let endpoints = outcome["endpoints"].as_array().context("endpoints")?;
            let Some(one) = used.first() else {
                ensure!(endpoints.is_empty(), "nothing was used");
                return match got {
                    Got::Answer(status, body) => {
                        let answer = format!("{status} with the body {:?}", body.trim_end());
                        ensure!(answer == text("answer"), "{answer}");
                        Ok(())
                    }
                    Got::Bytes(came) => {
                        ensure!(!came && text("answer").contains("closed"), "{got:?}");
                        Ok(())
                    }
                };
            };
            ensure!(used.len() == 1 && one.cluster == text("cluster"), "{used:?}");
            ensure!(endpoints.iter().any(|e| e["address"] == *one.endpoint), "{used:?}");
            match got {
                Got::Answer(200, body) => ensure!(body.starts_with(text("service")), "{body}"),
                Got::Bytes(true) => {}
                got => anyhow::bail!("{got:?}"),
            }
        }
        "passthrough" => {
            let one = used.first().context("nothing was used")?;
            ensure!(one.cluster == "passthrough_original_dst" && one.endpoint == to, "{used:?}");
            ensure!(outcome["to"].is_null() || text("to") == to, "{to}");
        }
        "answered" => {
            let Got::Answer(status, body) = got else { anyhow::bail!("{got:?}") };
            ensure!(used.is_empty(), "{used:?}");
            ensure!(outcome["status"] == u64::from(*status), "{got:?}");
            ensure!(text("body") == body, "{got:?}");
        }
        "closed" => {
            ensure!(used.is_empty() && matches!(got, Got::Bytes(false)), "{used:?} {got:?}");
        }
        "notCaptured" => {
            ensure!(used.is_empty() && matches!(got, Got::Bytes(true)), "{used:?} {got:?}");
        }
        other => anyhow::bail!("{other}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_running_server_and_the_folder_tell_the_same_and_the_server_since_when() -> Result<()> {
    let stage = Stage::set().await?;
    for destination in
        ["web", "mixed:9000", "broken", "empty", "nobody.example", "[fd00:10:96::1:10]:80"]
    {
        let (mut asked, mut read) =
            (stage.explain(destination, "http")?, stage.read(destination, "http")?);
        for one in [&mut asked, &mut read] {
            without_times(one);
        }
        ensure!(asked == read, "{destination}: {asked:#} and {read:#}");
    }
    let told = stage.explain("broken", "http")?;
    let verdict = told["verdict"].as_str().unwrap_or_default();
    ensure!(verdict.contains("Service shop/broken is quarantined since 20"), "{verdict}");
    // A pod that is not there is the asker's mistake; a server that is not there is not.
    let none = stage.run(&["--pod", "shop/nobody", "web", "--admin", stage::ADMIN])?;
    ensure!(none.status.code() == Some(1), "{none:?}");
    ensure!(
        String::from_utf8_lossy(&none.stderr).contains("no pod shop/nobody is known"),
        "{none:?}"
    );
    let away = stage.run(&["--pod", "shop/caller", "web", "--admin", "http://127.0.0.1:1"])?;
    ensure!(away.status.code() == Some(2), "{away:?}");
    let text = stage.run(&[
        "--pod",
        "shop/caller",
        "ledger:3306",
        "--speaks",
        "tcp",
        "--admin",
        stage::ADMIN,
    ])?;
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let expected = format!("Other TCP reaches shop/ledger, port 3306, at {TCP}.\n");
    ensure!(text.ends_with(&expected), "{text}");
    Ok(())
}

/// Takes the times out of every sentence: a server knows since when, who reads once does not.
fn without_times(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(at) = text.find(" since 20") {
                let end = at + " since 2026-11-30T12:00:00Z".len();
                text.replace_range(at..end.min(text.len()), "");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        Value::Object(fields) => {
            fields.remove("since");
            // How the proxy stands only a server knows.
            if let Some(Value::Array(notes)) = fields.get_mut("notes") {
                notes.retain(|note| {
                    !note.as_str().is_some_and(|note| note.starts_with("its proxy"))
                });
            }
            fields.values_mut().for_each(without_times);
        }
        _ => {}
    }
}
