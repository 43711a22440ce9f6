//! A TLS handshake with a stranger, by openssl on both ends.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use it::process::{Process, Spec};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::{SOON, Stage};

#[tokio::test]
async fn tls_is_between_the_two_that_speak_it() -> Result<()> {
    let stage = Stage::set().await?;
    let folder = it::places::folder()?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let mut make = std::process::Command::new("openssl");
    make.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]);
    make.args([
        "-subj",
        "/CN=stranger.example",
        "-addext",
        "subjectAltName=DNS:stranger.example,DNS:web.shop",
    ]);
    it::process::output(make.args(["-keyout", &key, "-out", &cert]))?;
    let args = [
        "s_server",
        "-accept",
        "443",
        "-cert",
        &cert,
        "-key",
        &key,
        "-rev",
        "-alpn",
        "h2,http/1.1",
        "-naccept",
        "9",
    ];
    let mut spec = Spec::new("openssl".as_ref(), args, &folder.path().join("server.log"));
    spec.netns = Some(stage.stranger.netns().name().to_owned());
    let mut server = Process::start(&spec)?;
    let listens = || async {
        let to = stage.addresses(443)[0];
        stage.stranger.run(async move { Ok(TcpStream::connect(to).await?) }).await
    };
    it::eventually("the TLS server", SOON, listens).await?;
    server.must_run()?;

    let pod = stage.caller().pod.netns();
    // The name of a mesh service in the handshake changes nothing: TLS goes its own way.
    for (n, (name, alpn)) in
        [("stranger.example", "http/1.1"), ("web.shop", "h2")].into_iter().enumerate()
    {
        let mut client = pod.command("openssl");
        client.args([
            "s_client",
            "-connect",
            "198.51.100.7:443",
            "-servername",
            name,
            "-alpn",
            alpn,
        ]);
        client.args(["-CAfile", &cert, "-verify_return_error", "-verify_hostname", name]);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = tokio::process::Command::from(client).kill_on_drop(true).spawn()?;
        let mut stdin = client.stdin.take().context("stdin")?;
        let mut stdout = tokio::io::BufReader::new(client.stdout.take().context("stdout")?);
        stdin.write_all(b"abcdef\n").await?;
        let mut seen = String::new();
        let talk = async {
            while !seen.contains("fedcba") {
                let line = tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut seen).await?;
                ensure!(line > 0, "the client ended: {seen}");
            }
            Ok(())
        };
        tokio::time::timeout(SOON, talk).await.context("no answer by TLS")??;
        ensure!(
            seen.contains("Verification: OK") && seen.contains(&format!("ALPN protocol: {alpn}")),
            "{seen}"
        );
        ensure!(stage.passed().await? == n as u64 + 1);
    }
    let inspected = stage.caller().envoy.stat("tls_inspector.tls_found").await?;
    ensure!(inspected == 2, "{inspected} handshakes were recognised");
    ensure!(stage.web.counts().connections() == 0);
    Ok(())
}
