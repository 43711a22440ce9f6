//! What a service says itself reaches its client as it said it.

use anyhow::{Result, ensure};
use it::client;
use it::net::Mode;

use crate::stage::{Stage, Stream, WEB};

#[tokio::test]
async fn a_503_of_the_application_arrives_once_and_was_asked_for_once() -> Result<()> {
    for stream in crate::STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let to = format!("{WEB}:80").parse()?;
        let before = stage.web.counts().requests();
        let get = async move { client::get(to, "web.shop", "/fails").await };
        let answer = stage.shop().pod.run(get).await?;
        ensure!(answer.message.head.start_line() == "HTTP/1.1 503 Not Today", "{answer:?}");
        ensure!(
            answer.field("x-own").as_deref() == Some("yes") && answer.text() == "mine",
            "{answer:?}"
        );
        let asked = stage.web.counts().requests() - before;
        ensure!(asked == 1, "the backend saw {asked} requests over {stream:?}");
        let retries = stage.shop().envoy.stats("upstream_rq_retry$").await?;
        ensure!(retries.values().all(|count| *count == 0), "{retries:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_the_mesh_answers_says_so() -> Result<()> {
    let stage = Stage::set(Mode::All, Stream::Delta).await?;
    let answer = stage.shop().get(format!("{WEB}:80").parse()?, "web.shop:9999").await?;
    ensure!(answer.text().contains("aether"), "{:?}", answer.text());
    // Nothing answers at a ClusterIP on its own, so a name that is nobody's leads to nothing there.
    let answer = stage.shop().get("10.96.1.11:7000".parse()?, "nobody.example").await?;
    ensure!(answer.status()? == 503 && answer.text().contains("aether"), "{:?}", answer.text());
    Ok(())
}
