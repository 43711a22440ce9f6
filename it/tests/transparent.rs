//! An application does not notice that it is captured: what both ends of an exchange see is compared with what they
//! see without capture, for a service that declares its protocols, one that does not, and a stranger.
//!
//! `AETHER_IT_SEED` chooses other generated exchanges than the usual ones, `AETHER_IT_CASES` how many there are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]

#[path = "transparent/allowed.rs"]
mod allowed;
#[path = "transparent/difference.rs"]
mod difference;
#[path = "transparent/exact.rs"]
mod exact;
#[path = "transparent/exchange.rs"]
mod exchange;
#[path = "transparent/generate.rs"]
mod generate;
#[path = "transparent/h2.rs"]
mod h2;
#[path = "transparent/protocols.rs"]
mod protocols;
#[path = "transparent/stage.rs"]
mod stage;

use anyhow::Result;
use difference::Differences;
use exact::View;
use protocols::Servers;
use stage::{Caller, DECLARED, HTTP1, STRANGER, Stage, TARGETS};

/// A number from the environment.
fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().map_or(usual, |text| text.parse().expect(variable))
}

/// The seeds of the generated exchanges.
fn seeds() -> std::ops::Range<u64> {
    let first = number("AETHER_IT_SEED", 0);
    first..first + number("AETHER_IT_CASES", 200)
}

/// What there is without capture is the measure, so it has to be whole.
fn must_be_answered(views: &[View], asked: usize, seed: u64) {
    let whole = views.len() == asked && views.iter().all(|view| view.answer.is_ok());
    assert!(whole, "seed {seed}: {asked} were asked without capture: {views:?}");
}

#[tokio::test]
async fn generated_exchanges_over_http1_are_as_without_capture() -> Result<()> {
    let stage = Stage::set().await?;
    let ours = exchange::Scripted::start(&stage, &DECLARED).await?;
    let strangers = exchange::Scripted::start(&stage, &STRANGER).await?;
    let mut differences = Differences::default();
    for target in &TARGETS {
        let server = if *target == STRANGER { &strangers } else { &ours };
        for seed in seeds() {
            let exchanges = generate::exchanges(seed, target.hosts);
            let free = server.play(&stage, Caller::Free, target, &exchanges).await?;
            must_be_answered(&free, exchanges.len(), seed);
            let captured = server.play(&stage, Caller::Captured, target, &exchanges).await?;
            for (free, captured) in free.iter().zip(&captured) {
                let expected = allowed::over_http1(free, captured);
                differences.compare(&format!("seed {seed}, {}", target.name), &expected, captured);
            }
        }
    }
    differences.none(seeds().count() * TARGETS.len());
    stage.went_through_the_proxy(seeds().count() as u64).await
}

#[tokio::test]
async fn generated_exchanges_over_http2_are_as_without_capture() -> Result<()> {
    let stage = Stage::set().await?;
    let ours = h2::Scripted::start(&stage, &DECLARED).await?;
    let strangers = h2::Scripted::start(&stage, &STRANGER).await?;
    let mut differences = Differences::default();
    for target in &TARGETS {
        let server = if *target == STRANGER { &strangers } else { &ours };
        for seed in seeds() {
            let exchange = h2::exchange(seed, target.hosts);
            let free = server.play(&stage, Caller::Free, target, &exchange).await?;
            must_be_answered(std::slice::from_ref(&free), 1, seed);
            let captured = server.play(&stage, Caller::Captured, target, &exchange).await?;
            let expected = allowed::over_http2(&free);
            differences.compare(&format!("seed {seed}, {}", target.name), &expected, &captured);
        }
    }
    differences.none(seeds().count() * TARGETS.len());
    stage.went_through_the_proxy(seeds().count() as u64).await
}

#[tokio::test]
async fn every_protocol_is_answered_as_without_capture() -> Result<()> {
    let stage = Stage::set().await?;
    let _ours = Servers::start(&stage, &DECLARED).await?;
    let _strangers = Servers::start(&stage, &STRANGER).await?;
    let plays = TARGETS.map(|target| protocols::play(&stage, target));
    let differences = futures::future::try_join_all(plays).await?.concat();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // For each target: at least these many requests, those on kept connections alone.
    stage.went_through_the_proxy(60).await?;
    Ok(())
}

#[tokio::test]
async fn an_applications_own_503_reaches_the_client_once() -> Result<()> {
    let stage = Stage::set().await?;
    for target in [DECLARED, STRANGER] {
        let servers = Servers::start(&stage, &target).await?;
        for caller in [Caller::Free, Caller::Captured] {
            let (address, host) = (target.at(caller, HTTP1), target.hosts[0]);
            let before = servers.http1.counts().requests();
            let ask = async move { it::client::get(address, host, "/503").await };
            let answer = stage.pod(caller).run(ask).await?;
            assert_eq!(answer.message.head.start_line(), "HTTP/1.1 503 Mine");
            assert_eq!((answer.field("x-own").as_deref(), &*answer.text()), (Some("1"), "mine\n"));
            assert_eq!(servers.http1.counts().requests() - before, 1, "{caller:?}");
        }
    }
    Ok(())
}
