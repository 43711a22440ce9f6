//! A connection on which nothing is said, while everything around it changes.

use std::time::Duration;

use anyhow::{Result, ensure};
use it::net::Mode;
use it::world::served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{MANY, MIXED, ONE, ONE_V6, Stage, at};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_idle_connection_outlives_every_change_around_it() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let caller = stage.caller();
    let mut open = Vec::new();
    for to in [at(ONE, 7), at(ONE_V6, 7), at(MANY, 7), at(MIXED, 9000), at(ONE, 18081)] {
        let greet = async move {
            let mut stream = TcpStream::connect(to).await?;
            stream.write_all(b"before").await?;
            let mut back = [0; 6];
            stream.read_exact(&mut back).await?;
            Ok(stream)
        };
        open.push((to, caller.pod.run(greet).await?));
    }
    let connections = stage.echo.counts().connections();

    // Other services come, change their ports, and go; each is seen in the Envoy before the next.
    let endpoint = stage.server.v4()?;
    for n in 0..10_u16 {
        let (key, ip) = (format!("shop/other{n}"), format!("10.96.7.{n}"));
        let http = [(80, "http", 8080)];
        let both = [(80, "http", 8080), (9000 + n, "raw", 7000)];
        stage.mesh.world.put("other", &served(&key, &[&ip], &http, endpoint)?)?;
        // Asked before it is there, a request would wait at its address for whoever else answers there.
        caller.knows(&format!("cap_http.shop/other{n}.shop"), SOON).await?;
        let answer = caller.get(at(&ip, 80), &format!("other{n}.shop")).await?;
        ensure!(answer.text() == "web", "{answer:?}");
        stage.mesh.world.put("other", &served(&key, &[&ip], &both, endpoint)?)?;
        caller.knows(&format!("cap_tcp_shop/other{n}_{ip}_raw"), SOON).await?;
    }
    stage.mesh.world.remove("other")?;
    caller.forgot("cap_tcp_shop/other9_10.96.7.9_raw", SOON).await?;

    for (to, stream) in &mut open {
        stream.write_all(b"after!").await?;
        let mut back = [0; 6];
        tokio::time::timeout(SOON, stream.read_exact(&mut back)).await??;
        ensure!(&back == b"after!", "{to}: {back:?}");
    }
    ensure!(stage.echo.counts().connections() == connections, "one was replaced");
    Ok(())
}
