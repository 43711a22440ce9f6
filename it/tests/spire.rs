//! The rig proves itself: real SVIDs from a real agent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use it::spire::Spire;

const SOON: Duration = Duration::from_mins(1);

/// Users that no other program here runs as.
const CART: u32 = 61_001;
const TILL: u32 = 61_002;

#[tokio::test]
async fn an_entry_gives_its_user_an_svid_and_nobody_else() {
    let start = Instant::now();
    let mut spire = Spire::start_server().await.unwrap();
    println!("a SPIRE server is up after {:?}", start.elapsed());
    assert!(spire.fetch(CART).await.is_err() && !spire.socket().exists(), "there is no agent yet");
    let start = Instant::now();
    spire.start_agent().await.unwrap();
    println!("an agent is up after {:?}", start.elapsed());
    assert!(spire.start_agent().await.is_err(), "there is one");
    let refused = spire.fetch(CART).await.unwrap_err().to_string();
    assert!(refused.contains("PermissionDenied"), "{refused}");

    let start = Instant::now();
    let entry = spire.entry("ns/shop/sa/cart", CART).await.unwrap();
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    println!("an SVID is given {:?} after its entry", start.elapsed());
    assert!(spire.fetch(TILL).await.unwrap_err().to_string().contains("PermissionDenied"));

    // An agent that comes back knows the entries; one that was killed leaves a socket on which nobody answers.
    spire.stop_agent().unwrap();
    assert!(!spire.socket().exists());
    spire.start_agent().await.unwrap();
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    spire.kill_agent().unwrap();
    assert!(spire.socket().exists() && spire.fetch(CART).await.is_err());
    let start = Instant::now();
    spire.start_agent().await.unwrap();
    println!("an agent is up again after {:?}", start.elapsed());
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    spire.pause_agent().unwrap();
    assert!(spire.fetch(CART).await.is_err());
    spire.resume_agent().unwrap();

    // Two selectors: both must hold.
    let both = [format!("unix:uid:{TILL}"), format!("unix:gid:{TILL}")];
    let both = both.each_ref().map(String::as_str);
    spire.entry_for("ns/pay/sa/till", &both, Some(30)).await.unwrap();
    spire.wait_for(TILL, &["spiffe://it.example/ns/pay/sa/till"], SOON).await.unwrap();
    spire.delete_entry(&entry).await.unwrap();
    let gone = async { while spire.fetch(CART).await.is_ok() {} };
    tokio::time::timeout(SOON, gone).await.expect("an SVID is given without its entry");
}
