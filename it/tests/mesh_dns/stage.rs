//! A node with a resolver and a DNS server of the cluster behind it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use it::backend::{DnsBackend, Zone};
use it::client::{self, Records};
use it::net::Netns;
use it::resolver::{Names, Resolver};

/// Where pods ask. Port 53, since a `resolv.conf` knows no other.
pub const RESOLVER: &str = "127.0.0.1:53";
/// The cluster's DNS.
pub const CLUSTER: &str = "127.0.0.2:53";

pub const RECORDS: [(&str, &str); 5] = [
    ("shop/cart", "10.96.0.7"),
    ("shop/cart", "fd00:10:96::7"),
    ("shop/four", "10.96.0.4"),
    ("shop/six", "fd00:10:96::6"),
    ("cart/db", "10.96.0.8"),
];
pub const SHORT: [(&str, &str); 3] =
    [("cart", "shop/cart"), ("four", "shop/four"), ("six", "shop/six")];

/// The limit of one query, after which it counts as lost.
pub const SOON: Duration = Duration::from_secs(5);

pub struct Stage {
    pub resolver: Resolver,
    pub cluster: DnsBackend,
    pub names: Names,
    // Last: what runs in it ends first.
    pub node: Netns,
}

/// A resolver that knows one mesh name, `cart.shop`, and whose upstream nobody serves: each other name is looked up for
/// seconds.
pub async fn without_upstream() -> Result<(Netns, Names, Resolver)> {
    let mut names = Names::new()?;
    names.write(&[("shop/cart", "10.96.0.7")], &[])?;
    let node = Netns::new()?;
    let (server, upstream) = (RESOLVER.parse()?, CLUSTER.parse()?);
    let resolver = Resolver::start(&node, &names.path(), &[server], &[upstream], &[]).await?;
    Ok((node, names, resolver))
}

impl Stage {
    pub async fn set(options: &[&str]) -> Result<Self> {
        let mut names = Names::new()?;
        names.write(&RECORDS, &SHORT)?;
        Self::over(names, options).await
    }

    /// Over these names, whatever there is of them.
    pub async fn over(names: Names, options: &[&str]) -> Result<Self> {
        let node = Netns::new()?;
        let zone: Zone = [
            ("web.shop.svc.cluster.local".to_owned(), vec!["10.96.1.1".parse()?]),
            ("web-0.peers.shop.svc.cluster.local".to_owned(), vec!["10.244.1.1".parse()?]),
            (
                "both.shop.svc.cluster.local".to_owned(),
                vec!["10.96.1.2".parse()?, "fd00::1:2".parse()?],
            ),
            ("stranger.example".to_owned(), vec!["198.51.100.7".parse()?]),
            ("many.example".to_owned(), (1..=100).map(|n| [198, 51, 100, n].into()).collect()),
        ]
        .into();
        let cluster = DnsBackend::start(&node, CLUSTER.parse()?, zone).await?;
        let resolver = Resolver::start(
            &node,
            &names.path(),
            &[RESOLVER.parse()?],
            &[cluster.address()],
            options,
        )
        .await?;
        Ok(Self { resolver, cluster, names, node })
    }

    /// Asks for the addresses of one family, with one datagram.
    pub async fn ask(&self, name: &str, v6: bool) -> Result<Records> {
        let (name, server) = (name.to_owned(), RESOLVER.parse::<SocketAddr>()?);
        self.node.run(async move { client::ask(server, &name, v6, SOON).await }).await
    }

    /// What dig says to these words, asked of the resolver.
    pub fn dig(&self, words: &str) -> Result<String> {
        let mut command = self.node.command("dig");
        command.args(["@127.0.0.1", "+tries=1", "+time=5"]).args(words.split_whitespace());
        it::process::output(&mut command)
    }
}
