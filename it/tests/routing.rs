//! HTTP goes by its authority: what each spelling of a host reaches from a pod, in a real Envoy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "routing/own_words.rs"]
mod own_words;
#[path = "routing/scoped.rs"]
mod scoped;
#[path = "routing/stage.rs"]
mod stage;

use anyhow::{Result, ensure};
use it::client::H2c;
use it::net::Mode;
use stage::{MIXED, PAY_WEB, PEER, STRANGER, Stage, Stream, WEB, WEB_V6, reach, refuse};

/// Where all of this holds alike: by VHDS, and with whole tables.
const STREAMS: [Stream; 2] = [Stream::Delta, Stream::Sotw];

/// All spellings of a service but the bare name and addresses.
pub fn spellings(service: &str, mesh: &str, namespace: &str, short: bool) -> Vec<String> {
    let mut names = vec![
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}"),
        format!("{mesh}.{namespace}.aether.internal"),
    ];
    if short {
        names.push(format!("{mesh}.aether.internal"));
    }
    names.iter().flat_map(|name| [name.clone(), format!("{name}."), name.to_uppercase()]).collect()
}

/// Each of these hosts with this at its end.
pub fn with(hosts: &[String], end: &str) -> Vec<String> {
    hosts.iter().map(|host| format!("{host}{end}")).collect()
}

fn words(hosts: &[String]) -> Vec<&str> {
    hosts.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn every_spelling_reaches_its_service_with_and_without_a_port() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let web = format!("{WEB}:80");
        let mut hosts = spellings("web", "web", "shop", true);
        hosts.extend([
            WEB.to_owned(),
            format!("[{WEB_V6}]"),
            format!("[{}]", WEB_V6.to_uppercase()),
        ]);
        for caller in [stage.shop(), stage.pay()] {
            for port in ["", ":80", ":", ":18081"] {
                reach(caller, &web, &words(&with(&hosts, port)), "shop/web:80").await?;
            }
            reach(caller, &web, &words(&with(&hosts, ":8081")), "shop/web:8081").await?;
            // The connection's own address counts for nothing, in either family.
            for to in [format!("[{WEB_V6}]:80"), format!("{PAY_WEB}:80"), format!("{STRANGER}:80")]
            {
                reach(caller, &to, &["web.shop", "Web.Shop.Svc.Cluster.Local.:80"], "shop/web:80")
                    .await?;
                reach(caller, &to, &["web.shop:8081"], "shop/web:8081").await?;
            }
        }
        let hosts = spellings("web", "web", "pay", false);
        reach(stage.shop(), &web, &words(&hosts), "pay/web:80").await?;
        ensure!(stage.stranger.counts().connections() == 0, "the stranger was asked");
        stage.nothing_leaked()?;
    }
    Ok(())
}

#[tokio::test]
async fn http2_goes_by_its_authority_too() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let to = format!("{WEB}:80").parse()?;
        for (host, expected) in [
            ("web.shop", "shop/web:80"),
            ("WEB.shop.svc:8081", "shop/web:8081"),
            ("web.aether.internal.", "shop/web:80"),
            ("[fd00:10:96::1:10]:8081", "shop/web:8081"),
            ("web", "pay/web:80"),
            ("only", "pay/only:80"),
        ] {
            let get = async move { H2c::connect(to).await?.get(&format!("http://{host}/")).await };
            let answer = stage.pay().pod.run(get).await?;
            ensure!(answer.status == 200 && answer.body == expected, "{host}: {answer:?}");
        }
        stage.nothing_leaked()?;
    }
    Ok(())
}

#[tokio::test]
async fn the_bare_name_means_the_callers_own_namespace_and_no_other() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let stranger = format!("{STRANGER}:80");
        for to in [format!("{WEB}:80"), format!("{PAY_WEB}:80"), stranger.clone()] {
            let bare = ["web", "web.", "WEB", "web:80", "web.:18081"];
            reach(stage.shop(), &to, &bare, "shop/web:80").await?;
            reach(stage.pay(), &to, &bare, "pay/web:80").await?;
        }
        reach(stage.shop(), &stranger, &["web:8081"], "shop/web:8081").await?;
        refuse(stage.pay(), &stranger, &["web:8081", "web.:8081"], &["pay/web", "80"]).await?;
        // A name of the other namespace alone is nobody's here: it goes where the client was going.
        reach(stage.shop(), &stranger, &["only", "only.", "only:80"], "stranger").await?;
        reach(stage.pay(), &stranger, &["api", "api.", "api:7000", "meshy"], "stranger").await?;
        stage.nothing_leaked()?;
    }
    Ok(())
}

#[tokio::test]
async fn each_port_has_a_backend_of_its_own_and_an_unknown_one_none() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let shop = stage.shop();
        let web = format!("{WEB}:80");
        for (host, backend) in [
            // No port 80: what names no port means the default, which is the first.
            ("api.shop", "shop/api:7000"),
            ("api.shop:", "shop/api:7000"),
            ("api.shop:7000", "shop/api:7000"),
            ("api.shop:18081", "shop/api:7000"),
            ("api.shop:7001", "shop/api:7001"),
            // A port 18081 of its own is the default.
            ("meshy.shop", "shop/meshy:18081"),
            ("meshy.shop:18081", "shop/meshy:18081"),
            ("meshy.shop:7000", "shop/meshy:7000"),
            // A TCP port that speaks HTTP is a port as well.
            ("mixed.shop", "shop/mixed:80"),
            ("mixed.shop:9000", "shop/mixed:9000"),
        ] {
            reach(shop, &web, &[host], backend).await?;
        }
        // At the very address and port where something would answer if the mesh let it through.
        for (to, v6) in [(WEB, false), (WEB_V6, true), (STRANGER, false)] {
            let to = if v6 { format!("[{to}]:80") } else { format!("{to}:80") };
            let hosts = [
                "web.shop:9999",
                "web.shop.svc.cluster.local.:81",
                "web:1",
                "WEB.aether.internal:65535",
            ];
            refuse(shop, &to, &hosts, &["shop/web", "80 and 8081"]).await?;
        }
        let address = [format!("{WEB}:9999"), format!("[{WEB_V6}]:9999")];
        refuse(shop, &address[0], &words(&address), &["shop/web", "80 and 8081"]).await?;
        refuse(shop, &address[1], &words(&address), &["shop/web", "80 and 8081"]).await?;
        refuse(
            shop,
            &format!("{MIXED}:9999"),
            &["mixed.shop:9999"],
            &["shop/mixed", "80 and 9000"],
        )
        .await?;
        // No port is part of another's number.
        refuse(shop, &web, &["web.shop:080", "web.shop:180", "api.shop:80"], &["no such port"])
            .await?;
        ensure!(stage.stranger.counts().connections() == 0, "the stranger was asked");
        stage.nothing_leaked()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_headless_service_has_its_name_and_its_pods_keep_theirs() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let (peer, stranger) = (format!("{PEER}:8080"), format!("{STRANGER}:80"));
        let own = ["peers.shop", "peers.shop.svc.", "peers", "Peers.shop.svc.cluster.local:80"];
        reach(stage.shop(), &stranger, &own, "peer").await?;
        // Its clients speak to the pods' own ports.
        reach(stage.shop(), &peer, &["peers.shop:8080", "peers:8080"], "peer").await?;
        let other = format!("{PEER}:8099");
        reach(
            stage.shop(),
            &other,
            &["peers.shop:8099", "peers.shop.svc.cluster.local.:8099"],
            "peer's own port",
        )
        .await?;
        // Whoever names a pod chose it.
        let pods =
            ["peers-0.peers.shop.svc.cluster.local", "peers-0.peers", "peers-0.peers.shop:8099"];
        reach(stage.shop(), &other, &pods, "peer's own port").await?;
        reach(stage.shop(), &stranger, &pods, "stranger").await?;
        // It has no name in the mesh.
        reach(
            stage.shop(),
            &stranger,
            &["peers.shop.aether.internal", "peers.aether.internal"],
            "stranger",
        )
        .await?;
        // And is nobody's bare name elsewhere.
        reach(stage.pay(), &stranger, &["peers"], "stranger").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_renamed_service_has_both_names_each_where_it_belongs() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::All, stream).await?;
        let to = format!("{STRANGER}:80");
        let hosts = spellings("old", "fresh", "shop", true);
        reach(stage.pay(), &to, &words(&hosts), "shop/old:80").await?;
        reach(stage.shop(), &to, &["old", "old.:80", "10.96.1.13"], "shop/old:80").await?;
        let nobodys = [
            "old.shop.aether.internal",
            "old.aether.internal",
            "fresh.shop",
            "fresh.shop.svc",
            "fresh",
        ];
        reach(stage.shop(), &to, &nobodys, "stranger").await?;
        refuse(stage.shop(), &to, &["old:81", "fresh.aether.internal:81"], &["80"]).await?;
    }
    Ok(())
}
