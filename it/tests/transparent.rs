//! An application does not notice that it is captured: what both ends see is compared with what they see without
//! capture.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]

#[path = "transparent/allowed.rs"]
mod allowed;
#[path = "transparent/exact.rs"]
mod exact;
#[path = "transparent/exchange.rs"]
mod exchange;
#[path = "transparent/generate.rs"]
mod generate;
#[path = "transparent/h2.rs"]
mod h2;
#[path = "transparent/stage.rs"]
mod stage;

use anyhow::Result;
use exchange::Scripted;
use stage::{Caller, Stage, TARGETS};

const CASES: u64 = 200;

#[tokio::test]
async fn generated_exchanges_are_as_without_capture() -> Result<()> {
    let stage = Stage::set().await?;
    let only: Option<u64> = std::env::var("AETHER_IT_CASE").ok().and_then(|v| v.parse().ok());
    let mut failures = Vec::new();
    let mut servers = Vec::new();
    for target in [&TARGETS[0], &TARGETS[2]] {
        servers.push(Scripted::start(&stage, target).await?);
    }
    for (n, target) in TARGETS.iter().enumerate() {
        let server = &servers[n / 2];
        for seed in 0..CASES {
            if only.is_some_and(|only| only != seed) {
                continue;
            }
            let exchanges = generate::exchanges(seed, target.hosts);
            let direct = server.play(&stage, Caller::Free, target, &exchanges).await?;
            let captured = server.play(&stage, Caller::Captured, target, &exchanges).await?;
            assert_eq!(
                direct.len(),
                exchanges.len(),
                "case {seed} without capture: {:?}\n{}",
                direct.last(),
                exchanges.last().unwrap().answer.escape_ascii()
            );
            for (n, view) in direct.iter().enumerate() {
                assert!(view.answer.is_ok(), "case {seed} without capture: {view:?}");
                let Some(captured) = captured.get(n) else { break };
                let expected = allowed::over_http1(view, captured);
                if expected != *captured {
                    let text = exact::difference(&expected, captured);
                    failures.push(format!("case {seed}.{n}, {}:\n{text}", target.name));
                }
            }
        }
    }
    println!("{} differ", failures.len());
    for f in &failures {
        println!("{f}");
    }
    assert!(failures.is_empty());
    Ok(())
}

#[tokio::test]
async fn generated_exchanges_over_http2_are_as_without_capture() -> Result<()> {
    let stage = Stage::set().await?;
    let mut failures = Vec::new();
    let mut servers = Vec::new();
    for target in [&TARGETS[0], &TARGETS[2]] {
        servers.push(h2::Scripted::start(&stage, target).await?);
    }
    for (n, target) in TARGETS.iter().enumerate() {
        let server = &servers[n / 2];
        for seed in 0..CASES {
            let exchanges = [h2::exchange(seed, target.hosts)];
            let direct = server.play(&stage, Caller::Free, target, &exchanges).await?;
            let captured = server.play(&stage, Caller::Captured, target, &exchanges).await?;
            for (view, captured) in direct.iter().zip(&captured) {
                assert!(view.answer.is_ok(), "case {seed} without capture: {view:?}");
                let expected = allowed::over_http2(view);
                if expected != *captured {
                    let text = exact::difference(&expected, captured);
                    failures.push(format!("case {seed}.{n}, {}:\n{text}", target.name));
                }
            }
        }
    }
    println!("{} differ", failures.len());
    for f in &failures {
        println!("{f}");
    }
    assert!(failures.is_empty());
    Ok(())
}
