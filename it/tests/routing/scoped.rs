//! Scoped mode: only port 18081 is captured.

use std::time::Duration;

use anyhow::{Result, ensure};
use it::net::Mode;

use crate::stage::{MIXED, PAY_WEB, STRANGER, Stage, WEB, WEB_V6, reach, refuse};
use crate::{STREAMS, spellings, with, words};

#[tokio::test]
async fn the_mesh_port_goes_by_authority_and_nothing_passes() -> Result<()> {
    for stream in STREAMS {
        let stage = Stage::set(Mode::Scoped, stream).await?;
        let (web, web_v6) = (format!("{WEB}:18081"), format!("[{WEB_V6}]:18081"));
        let hosts = spellings("web", "web", "shop", true);
        for port in ["", ":18081", ":80"] {
            reach(stage.pay(), &web, &words(&with(&hosts, port)), "shop/web:80").await?;
        }
        reach(
            stage.shop(),
            &web_v6,
            &["web", "web.shop:18081", "[fd00:10:96::1:10]"],
            "shop/web:80",
        )
        .await?;
        reach(stage.shop(), &web, &["web:8081", "10.96.1.10:8081"], "shop/web:8081").await?;
        reach(stage.pay(), &web, &["web", "web:18081"], "pay/web:80").await?;
        reach(stage.shop(), &web, &["peers.shop"], "peer").await?;
        refuse(
            stage.shop(),
            &web,
            &["web:9999", "web.shop.svc:9999"],
            &["shop/web", "80 and 8081"],
        )
        .await?;
        refuse(stage.shop(), &web, &["peers.shop:8099"], &["shop/peers", "80"]).await?;
        let strangers = [
            "stranger.example",
            "stranger.example:18081",
            "198.51.100.7",
            "only",
            "peers-0.peers.shop",
        ];
        for to in [web, web_v6, format!("{PAY_WEB}:18081"), format!("{STRANGER}:18081")] {
            refuse(stage.shop(), &to, &strangers, &["is no mesh service"]).await?;
        }
        ensure!(stage.stranger.counts().connections() == 0, "the stranger was asked");
        stage.nothing_leaked()?;
    }
    Ok(())
}

#[tokio::test]
async fn no_other_port_is_captured() -> Result<()> {
    let stage = Stage::set(Mode::Scoped, crate::stage::Stream::Delta).await?;
    // What stands at the address answers, and the name counts for nothing.
    reach(stage.shop(), &format!("{WEB}:80"), &["web.shop", "web:8081"], "leaked").await?;
    reach(stage.shop(), &format!("{MIXED}:9999"), &["web.shop"], "leaked").await?;
    reach(stage.shop(), &format!("{STRANGER}:80"), &["web.shop"], "stranger").await?;
    let captured = stage.shop().envoy.stat("listener.capture.downstream_cx_total").await?;
    ensure!(captured == 0, "{captured} connections were captured");
    // The counter is the right one.
    reach(stage.shop(), &format!("{WEB}:18081"), &["web.shop"], "shop/web:80").await?;
    let one = "listener.capture.downstream_cx_total";
    stage.shop().envoy.stat_is(one, Duration::from_secs(5), |count| count == 1).await?;
    Ok(())
}
