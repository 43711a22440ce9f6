//! The rig proves itself: each backend and its client speak, uncaptured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use it::backend::{self, H2Backend, Http1Backend, Note, Reply};
use it::client::{self, GrpcClient, H2c, Received};
use it::load::{Load, Pace, Work};
use it::net::Net;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn http_backends_keep_what_they_got_and_answer_what_they_were_told() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let exact = b"HTTP/1.1 207 Odd Words\r\nX-CaSe: A\r\nx-case: b\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
        3;ext=1\r\nabc\r\n0\r\nX-T: end\r\n\r\n";
    let backend = Http1Backend::start(server.netns(), server.at(80).unwrap(), move |request| {
        match request.head.start_line().split(' ').nth(1) {
            Some("/exact") => Reply::raw(exact),
            Some("/slow") => {
                Reply::empty().pause(Duration::from_millis(300)).then("HTTP/1.1 204 X\r\n\r\n")
            }
            Some("/cut") => Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").close(),
            _ => Reply::ok(request.body.clone()),
        }
    })
    .await
    .unwrap();
    let address = backend.address();
    pod.run(async move {
        let mut http = client::Http1::connect(address).await?;
        let answer = http.exchange(b"GET /exact HTTP/1.1\r\nHoSt: a\r\nB:c\r\n\r\n").await?;
        assert_eq!((answer.status()?, answer.text().as_str()), (207, "abc"));
        assert_eq!(answer.message.head.start_line(), "HTTP/1.1 207 Odd Words");
        assert_eq!(answer.message.head.fields()[0], ("X-CaSe".into(), "A".into()));
        assert_eq!(answer.message.trailers.0, b"X-T: end\r\n");
        let answer = http.exchange(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await?;
        assert!(answer.first_byte >= Duration::from_millis(300) && answer.status()? == 204);
        let asked = b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n\
            2\r\nhi\r\n0\r\n\r\n";
        let answer = http.exchange(asked).await?;
        assert_eq!((answer.interim.len(), answer.text().as_str()), (1, "hi"));
        let cut = http.exchange(b"GET /cut HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap_err();
        assert!(format!("{cut:#}").contains("3 bytes of 9"), "{cut:#}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!((backend.counts().connections(), backend.counts().requests()), (1, 4));
    let first = &backend.take()[0];
    assert_eq!(first.head.0, b"GET /exact HTTP/1.1\r\nHoSt: a\r\nB:c\r\n\r\n");
    backend.stop().await;
    let refused = pod.run(async move { client::get(address, "a", "/").await }).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("refused"));
}

#[tokio::test]
async fn half_a_request_in_pieces_reaches_the_backend_whole() -> anyhow::Result<()> {
    let net = Net::new()?;
    let (server, pod) = (net.pod()?, net.pod()?);
    let backend = Http1Backend::named(server.netns(), server.at(80)?, "x").await?;
    let address = backend.address();
    let answer = pod
        .run(async move {
            let mut stream = TcpStream::connect(address).await?;
            for piece in ["GET / HT", "TP/1.1\r\nhost: a\r", "\n\r", "\n"] {
                stream.write_all(piece.as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut wire = it::wire::Wire::new(stream);
            let head = wire.head().await?.unwrap();
            wire.answer_body(head, false).await
        })
        .await?;
    assert_eq!(answer.body, b"x");
    Ok(())
}

#[tokio::test]
async fn h2c_grpc_and_websocket_speak() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let h2 = H2Backend::named(server.netns(), server.at(81).unwrap(), "two").await.unwrap();
    let grpc = backend::grpc(server.netns(), server.at(82).unwrap()).await.unwrap();
    let ws = backend::ws_echo(server.netns(), server.at(83).unwrap()).await.unwrap();
    let (h2_at, grpc_at, ws_at) = (h2.address(), grpc.address(), ws.address());
    pod.run(async move {
        let answer = H2c::connect(h2_at).await?.get("http://web.shop:81/path?q").await?;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"two"[..]));

        let mut grpc = GrpcClient::connect(grpc_at, "api.shop:82").await?;
        let note = Note::new("hello", 3);
        assert_eq!(grpc.say(note.clone()).await?, note);
        assert_eq!(
            grpc.gather(vec![note.clone(), Note::new("!", 4)]).await?,
            Note::new("hello!", 7)
        );
        assert_eq!(grpc.spread(note.clone()).await?.len(), 3);
        let (send, notes) = tokio::sync::mpsc::channel(1);
        let mut chat = grpc.chat(tokio_stream::wrappers::ReceiverStream::new(notes)).await?;
        for n in 0..3 {
            // The next goes only when the last came back: both directions are open at once.
            send.send(Note::new("chat", n)).await?;
            assert_eq!(chat.message().await?, Some(Note::new("chat", n)));
        }
        let failed = grpc.say(Note::new("fail", 0)).await.unwrap_err();
        assert_eq!(failed.code(), tonic::Code::FailedPrecondition);

        client::websocket(ws_at, "web.shop", "/ws", &["one", "two"]).await?;
        Ok(())
    })
    .await
    .unwrap();
    let asked = h2.take();
    assert_eq!(asked[0].head.uri.to_string(), "http://web.shop:81/path?q");
}

#[tokio::test]
async fn tcp_backends_speak() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let at = |port| server.at(port).unwrap();
    let greeter = backend::greeter(server.netns(), at(91), "220 hi\r\n").await.unwrap();
    let sink = backend::sink(server.netns(), at(92)).await.unwrap();
    let source = backend::source(server.netns(), at(93), 5_000_000).await.unwrap();
    let closer = backend::closer(server.netns(), at(94)).await.unwrap();
    let addresses = [&greeter, &sink, &source, &closer].map(backend::Backend::address);
    let (pushed, pulled) = pod
        .run(async move {
            let (greeting, _) = client::say(addresses[0], b"", 8).await?;
            assert_eq!(greeting, b"220 hi\r\n");
            let pushed = client::push(addresses[1], 5_000_000).await?;
            let pulled = client::pull(addresses[2]).await?;
            let ended = client::say(addresses[3], b"", 1).await.unwrap_err();
            assert!(format!("{ended:#}").contains("closed after 0 bytes"), "{ended:#}");
            Ok((pushed, pulled))
        })
        .await
        .unwrap();
    assert_eq!((pushed, pushed.length), (pulled, 5_000_000));
    let other = Received { length: pushed.length, checksum: pushed.checksum ^ 1 };
    assert_ne!(pushed, other);
}

#[tokio::test]
async fn load_sees_a_lost_connection_and_none_where_there_is_none() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let http = Http1Backend::named(server.netns(), server.at(80).unwrap(), "ok").await.unwrap();
    let echo = backend::echo(server.netns(), server.at(90).unwrap()).await.unwrap();
    let work = [
        Work::Http { address: http.address(), host: "h".into(), body: "ok".into() },
        Work::Echo { address: echo.address() },
    ];
    let load = Load::start(pod.netns(), &work, Pace::default()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let report = load.stop().await.unwrap();
    report.flawless(work.len()).unwrap();

    let load = Load::start(pod.netns(), &work, Pace::default()).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let address = echo.address();
    echo.stop().await;
    let _again = backend::echo(server.netns(), address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let report = load.stop().await.unwrap();
    assert!(report.failed >= 1 && report.connections >= 3, "{report:?}");
    assert!(report.flawless(work.len()).is_err());
}
