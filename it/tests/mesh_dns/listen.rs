//! Addresses: which are served, and from which an answer comes.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use it::net::Netns;
use it::places;
use it::process::{Process, Spec, output};
use it::resolver::{Names, Resolver};
use tokio::net::UdpSocket;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_leaves_from_the_address_that_was_asked() -> Result<()> {
    let mut names = Names::new()?;
    names.write(&[("shop/cart", "10.96.0.7")], &[])?;
    let node = Netns::new()?;
    node.ip(
        "addr add 10.1.1.1/32 dev lo\naddr add fd00::9/128 dev lo\naddr add fd00::a/128 dev lo\n",
    )?;
    let listen: [SocketAddr; 2] = ["0.0.0.0:53".parse()?, "[::]:53".parse()?];
    let upstream = ["10.9.9.9:53".parse()?];
    let resolver = Resolver::start(&node, &names.path(), &listen, &upstream, &[]).await?;
    for address in ["127.0.0.1", "127.0.0.9", "10.1.1.1", "::1", "fd00::9", "fd00::a"] {
        for flag in ["+notcp", "+tcp"] {
            let mut dig = node.command("dig");
            let server = format!("@{address}");
            dig.args([&server, "cart.shop.aether.internal", flag, "+short", "+tries=1", "+time=3"]);
            // dig waits in vain where an answer comes from elsewhere.
            let said = output(&mut dig)?;
            ensure!(said.trim() == "10.96.0.7", "{address} {flag}: {said}");
        }
    }
    drop(resolver);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_is_told_before_anything_is_served() -> Result<()> {
    let node = Netns::new()?;
    let taken = node.run(async { Ok(UdpSocket::bind("127.0.0.1:53").await?) }).await?;
    let folder = places::folder()?;
    for (number, (args, words)) in [
        ("--listen 127.0.0.1:53 --upstream 10.9.9.9", ["127.0.0.1:53", "--listen"]),
        ("--listen 192.0.2.1:53 --upstream 10.9.9.9", ["192.0.2.1:53", "--listen"]),
        ("--listen 127.0.0.1:5353 --upstream 127.0.0.1:5353", ["127.0.0.1:5353", "for ever"]),
        ("--listen nonsense", ["nonsense", "127.0.0.1:18054"]),
        ("--mesh-domain cluster.local", ["--mesh-domain", "inside one another"]),
        ("--upstream 10.9.9.9 --metrics-address 192.0.2.1:1", ["192.0.2.1:1", "--metrics-address"]),
    ]
    .into_iter()
    .enumerate()
    {
        let log = folder.path().join(format!("{number}.log"));
        let mut spec = Spec::new(&places::program("mesh-dns")?, args.split_whitespace(), &log);
        spec.netns = Some(node.name().to_owned());
        let mut process = Process::start(&spec)?;
        let status = process.wait(Duration::from_secs(20))?;
        let log = process.log();
        ensure!(!status.success(), "{args}: {log}");
        ensure!(words.iter().all(|word| log.contains(word)), "{args}: {log}");
        ensure!(!log.contains("resolving"), "{args}: {log}");
    }
    drop(taken);
    Ok(())
}
