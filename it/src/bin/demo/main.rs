//! The demo: ordinary traffic of two pods, captured by real Envoys that got all of their configuration from
//! `aether serve`. Run it by `it/demo`.

mod ask;
mod stage;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use it::client;
use tokio::task::JoinSet;

use crate::ask::{Ask, Kind, resolve};
use crate::stage::{Caller, NAMESERVER, Stage, folder};

/// Watch two pods' traffic being captured by real Envoys.
#[derive(Debug, Parser)]
struct Arguments {
    /// Leave everything running at the end, until Ctrl-C.
    #[arg(long)]
    stay: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    it::program::run("demo", Box::pin(play(&arguments))).await
}

async fn play(arguments: &Arguments) -> Result<()> {
    let begin = Instant::now();
    let stage = Stage::set().await?;
    lookups(&stage.frontend).await?;
    for ask in frontend() {
        ask.make(&stage.frontend).await?;
    }
    for ask in till() {
        ask.make(&stage.till).await?;
    }
    add_a_service(&stage).await?;
    println!("that was all, in {:.1} s", begin.elapsed().as_secs_f32());
    if arguments.stay {
        println!(
            "everything stays up: {} in {}",
            stage.world.path().display(),
            stage.frontend.pod.netns().name()
        );
        println!("Ctrl-C ends it");
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// What the pod of namespace shop asks.
fn frontend() -> Vec<Ask> {
    let ask = |host, port, kind, why| Ask { host, port, kind, why };
    vec![
        ask("web", 80, Kind::Get("/"), "the bare name is that of the caller's own namespace"),
        ask("web.shop.svc.cluster.local", 80, Kind::Get("/"), "the cluster's name"),
        ask("web.shop.aether.internal", 80, Kind::Get("/"), "the mesh name"),
        ask("10.96.1.10", 80, Kind::Get("/"), "no name at all"),
        ask("web", 8081, Kind::Get("/healthz"), "a further port, with a cluster of its own"),
        ask("web", 9999, Kind::Get("/"), "a port that the Service lacks"),
        ask("web", 8082, Kind::WebSocket("are you there?"), "a WebSocket"),
        ask("api", 50051, Kind::Unary, "gRPC, unary"),
        ask("api", 50051, Kind::Stream, "gRPC, a stream"),
        ask("stranger.example", 80, Kind::Get("/"), "no Service: passes untouched"),
        ask("stranger.example", 22, Kind::Say("", 18), "no Service, and the server speaks first"),
    ]
}

/// What the pod of namespace pay asks.
fn till() -> Vec<Ask> {
    let ask = |host, port, kind, why| Ask { host, port, kind, why };
    vec![
        ask("web", 80, Kind::Get("/"), "the same bare name in another namespace"),
        ask("ledger", 3306, Kind::Say("", 11), "TCP: the server speaks first"),
        ask("stock", 80, Kind::Get("/"), "HTTP and TCP behind one address: this is HTTP"),
        ask("stock", 9000, Kind::Say("price of tea\n", 13), "and this is not"),
        ask("web.shop", 80, Kind::H2c("/"), "HTTP/2 to a neighbour that declares HTTP/1.1"),
    ]
}

/// Shows who answers which name.
async fn lookups(caller: &Caller) -> Result<()> {
    println!(
        "{}/{} asks its nameserver {NAMESERVER}; Envoy's dns_filter answers",
        caller.namespace, caller.name
    );
    for (name, whose) in [
        ("web.shop.aether.internal", "a mesh name"),
        ("ledger.aether.internal", "a short mesh name"),
        ("nobody.aether.internal", "no name of the mesh"),
        ("stranger.example", "forwarded to the cluster's nameserver"),
    ] {
        let ask = async move { client::ask(NAMESERVER, name, false, Duration::from_secs(5)).await };
        let records = caller.pod.run(ask).await?;
        let (code, took) = (records.code, records.took);
        println!(
            "    {name:28} {code}, {:?}, TTL {:?}   ({whose}; {took:.1?})",
            records.addresses, records.ttls
        );
    }
    println!();
    Ok(())
}

/// Puts a Service into the folder and sees how long it takes until it is reached.
async fn add_a_service(stage: &Stage) -> Result<()> {
    let caller = &stage.frontend;
    let manifest = std::fs::read_to_string(folder("demo-added").join("coupons.yaml"))?;
    let address = std::net::SocketAddr::new(resolve(caller, "coupons").await?, 80);
    let reached = |answer: &client::Answer| answer.text().contains("coupons of shop");
    let early = caller.pod.run(async move { client::get(address, "coupons", "/").await }).await?;
    if reached(&early) {
        bail!("coupons was reached before it was there");
    }
    println!("a file is added to the folder: Service shop/coupons");
    println!("    before     GET http://coupons/ is answered by {}", early.status()?);
    let begin = Instant::now();
    stage.world.put_text("coupons.yaml", &manifest)?;
    // One request every 2 ms, none awaiting another: one that fails is tried again by Envoy, and so comes late.
    let first = caller.pod.run(async move {
        let mut requests = JoinSet::new();
        while begin.elapsed() < Duration::from_secs(10) {
            requests.spawn(
                async move { (begin.elapsed(), client::get(address, "coupons", "/").await) },
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
            while let Some(done) = requests.try_join_next() {
                if let (sent, Ok(answer)) = done?
                    && reached(&answer)
                {
                    return Ok((sent, answer));
                }
            }
        }
        bail!("coupons was not reached within 10 s")
    });
    let (sent, answer) = first.await.context("after the file was added")?;
    println!("    after      {:.1?}: {} {:?}\n", sent, answer.status()?, answer.text());
    let ask = Ask { host: "coupons", port: 80, kind: Kind::Get("/"), why: "the new Service" };
    ask.make(caller).await
}
