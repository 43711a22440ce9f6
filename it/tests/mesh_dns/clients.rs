//! What applications of all kinds resolve, with the `resolv.conf` of a pod in the mesh.

use anyhow::{Context, Result, ensure};
use it::resolver::{Clients, Language};

use super::stage::Stage;

const RESOLV_CONF: &str = "nameserver 127.0.0.1\n\
    search shop.svc.cluster.local svc.cluster.local cluster.local\n\
    options ndots:2 timeout:1 attempts:3\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_language_finds_the_names_of_the_mesh_without_a_detour() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    let clients = Clients::build(RESOLV_CONF)?;
    for language in Language::ALL {
        for (name, expected) in [
            ("cart.shop.aether.internal", &["10.96.0.7", "fd00:10:96::7"][..]),
            ("cart.aether.internal", &["10.96.0.7", "fd00:10:96::7"]),
            // AAAA is NODATA, and that must not cost the A record; and the other way round.
            ("four.shop.aether.internal", &["10.96.0.4"]),
            ("six.aether.internal", &["fd00:10:96::6"]),
            ("CART.Shop.aether.INTERNAL", &["10.96.0.7", "fd00:10:96::7"]),
            ("db.cart.aether.internal", &["10.96.0.8"]),
        ] {
            let found = clients.resolve(&stage.node, language, name)?;
            let found: Vec<_> = found.iter().map(|ip| short_form(ip)).collect::<Result<_>>()?;
            ensure!(found == expected, "{language:?} {name}: {found:?}");
        }
        let asked = stage.cluster.queries();
        ensure!(asked == 0, "{language:?}: {asked} queries for names of the mesh went upstream");
    }
    // What there is not is not found, though it is sought in the search list then.
    for language in Language::ALL {
        for name in ["nobody.shop.aether.internal", "shop.aether.internal"] {
            let found = clients.resolve(&stage.node, language, name);
            let nothing = found.as_ref().map_or(true, Vec::is_empty);
            ensure!(nothing, "{language:?} {name}: {found:?}");
        }
    }
    Ok(())
}

/// Java writes IPv6 addresses in full.
fn short_form(ip: &str) -> Result<String> {
    let ip: std::net::IpAddr = ip.parse().with_context(|| ip.to_owned())?;
    Ok(ip.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_the_cluster_resolve_as_before() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    let clients = Clients::build(RESOLV_CONF)?;
    // c-ares, as Node's dns.resolve uses it, and JNDI know no search list.
    for language in [Language::Glibc, Language::Musl, Language::Go] {
        for (name, expected) in [
            ("web.shop.svc.cluster.local", "10.96.1.1"),
            ("web", "10.96.1.1"),
            ("web.shop", "10.96.1.1"),
            // musl never tries its search list on a name of so many dots.
            ("web.shop.svc", "10.96.1.1"),
            ("web-0.peers.shop.svc.cluster.local", "10.244.1.1"),
            ("stranger.example", "198.51.100.7"),
        ] {
            let found = clients.resolve(&stage.node, language, name)?;
            ensure!(found == [expected], "{language:?} {name}: {found:?}");
        }
        let both = clients.resolve(&stage.node, language, "both.shop.svc")?;
        ensure!(both == ["10.96.1.2", "fd00::1:2"], "{language:?}: {both:?}");
        // The name of a pod of a headless Service, without the cluster's domain: glibc and Go try
        // the search list after the name itself, musl does not. There the whole name has to be written.
        let pod = clients.resolve(&stage.node, language, "web-0.peers.shop");
        if language == Language::Musl {
            ensure!(pod.is_err(), "musl has learnt it: say so in the documentation: {pod:?}");
        } else {
            ensure!(pod? == ["10.244.1.1"], "{language:?}");
        }
    }
    Ok(())
}
