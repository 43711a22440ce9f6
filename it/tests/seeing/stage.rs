//! A server with two real Envoys, of which one has to refuse its listener.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::aether::Over;
use it::envoy::Envoy;
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::process::output;
use it::world::{Object, served};
use it::{client, places};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// The Envoy that has everything.
pub const CALLER: &str = "pod/shop/caller";
/// The one in whose pod something else has the port of the capture listener.
pub const REFUSER: &str = "pod/shop/refuser";

/// All of it. Dropped, it ends.
pub struct Stage {
    _envoy: Envoy,
    _taken: AbortOnDropHandle<()>,
    _pod: Pod,
    mesh: Mesh,
}

/// `shop/cart`, with an endpoint at this last number.
fn cart(endpoint: u8) -> Result<[Object; 2]> {
    served("shop/cart", &["10.96.1.10"], &[(80, "http", 8080)], [10, 244, 200, endpoint].into())
}

impl Stage {
    /// Starts it; all that can be accepted is.
    pub async fn start() -> Result<Self> {
        let address: IpAddr = [10, 244, 0, 90].into();
        let mut objects: Vec<Object> = cart(1)?.into();
        objects.push(Object::pod("shop", "refuser", "node", &[address]));
        let wrong = Object::service("shop", "wrong", "10.96.1.11").port("p", 80, "http");
        objects.push(wrong.annotation("aether.io/service", "not.a.label"));
        let plan = Plan::new(&["shop"], objects, Redirect::new(Mode::All));
        let mesh = Mesh::start(Net::new()?, plan).await?;

        let pod = mesh.net.pod_at(&[address])?;
        let taken =
            pod.netns().run(async { Ok(TcpListener::bind("127.0.0.1:18001").await?) }).await?;
        let taken = AbortOnDropHandle::new(tokio::spawn(async move {
            let _taken = taken;
            std::future::pending::<()>().await;
        }));
        let envoy = Envoy::start(&pod, &mesh.aether.bootstrap(REFUSER, Over::Socket, &[])?)?;
        let stage = Self { _envoy: envoy, _taken: taken, _pod: pod, mesh };
        it::eventually("one refuses and one has it all", SOON, || async {
            let (_, text, error) = stage.aether(&["status"])?;
            let right = text.contains("2 streams, 1 refusing, 0 pending, 0 waiting");
            ensure!(right, "{text}{error}");
            Ok(())
        })
        .await?;
        Ok(stage)
    }

    /// What grpcurl prints; these options, and these words after the address.
    pub fn grpcurl(&self, options: &[&str], words: &[&str]) -> Result<String> {
        let mut command = std::process::Command::new(places::tool("grpcurl")?);
        command.args(["-plaintext", "-max-time", "20"]).args(options).arg("-unix");
        output(command.arg(self.mesh.aether.socket()).args(words))
    }

    /// Runs `aether` on the node: its exit status, and what it printed on stdout and stderr.
    pub fn aether(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let program = places::program("aether")?;
        let mut command = self.mesh.net.node().command(&program.display().to_string());
        let done = command.args(args).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = done.status.code().context("it was killed")?;
        Ok((code, text(&done.stdout), text(&done.stderr)))
    }

    /// A page of the admin server.
    pub async fn page(&self, path: &str) -> Result<(u16, String)> {
        let (address, path) = (SocketAddr::from(([127, 0, 0, 1], 8080)), path.to_owned());
        let asked = async move { client::get(address, "admin", &path).await };
        let answer = self.mesh.net.node().run(asked).await?;
        Ok((answer.status()?, answer.text()))
    }

    /// What `render` prints of the caller.
    pub fn rendered(&self) -> Result<Value> {
        let folder = self.mesh.world.path().display().to_string();
        let (_, text, error) =
            self.aether(&["render", "--manifests", &folder, "--node", CALLER])?;
        serde_json::from_str(&text).context(error)
    }

    /// A server on the node that is no `aether`, as `http://<address>`.
    pub async fn stranger(&self) -> Result<(String, AbortOnDropHandle<()>)> {
        let node = self.mesh.net.node();
        let listener = node.run(async { Ok(TcpListener::bind("127.0.0.1:0").await?) }).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let serve = async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
            }
        };
        Ok((address, node.spawn(serve)?))
    }

    /// Another endpoint of the cart's.
    pub fn changes(&self) -> Result<()> {
        let slice = cart(2)?.into_iter().next_back().context("a slice")?;
        let slice = slice.with(&["metadata", "name"], "cart-2");
        self.mesh.world.put("more", &[slice])
    }
}
