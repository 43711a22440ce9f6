//! The whole of it, for a test that wants some services and someone to call them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::aether::{Aether, Over};
use crate::net::{Net, Redirect};
use crate::sidecar::Sidecar;
use crate::world::{Object, World};

/// How long a start may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// A folder, an `aether serve` that follows it, and a captured caller in each of some namespaces. Dropped, all of it
/// ends; what the services are is the test's to start and to keep.
#[derive(Debug)]
pub struct Mesh {
    /// The callers `<namespace>/caller`, in the order of their namespaces.
    pub callers: Vec<Sidecar>,
    /// The program under test.
    pub aether: Aether,
    /// What it follows. The file `all` holds the objects of the start.
    pub world: World,
    /// The node.
    pub net: Net,
}

/// What a mesh is to be.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Where the callers are; the pods have addresses of both families.
    pub namespaces: &'a [&'a str],
    /// The manifests, besides the namespaces, a node and the callers' pods.
    pub objects: Vec<Object>,
    /// More options of `aether serve`.
    pub serve: &'a [&'a str],
    /// How the Envoys reach it.
    pub over: Over,
    /// More options of `aether bootstrap`.
    pub bootstrap: &'a [&'a str],
    /// What is redirected in the callers' pods.
    pub redirect: Redirect,
}

impl<'a> Plan<'a> {
    /// Callers in these namespaces that ask by delta over the Unix socket.
    pub fn new(namespaces: &'a [&'a str], objects: Vec<Object>, redirect: Redirect) -> Self {
        Self { namespaces, objects, serve: &[], over: Over::Socket, bootstrap: &[], redirect }
    }
}

impl Mesh {
    /// Starts it on this node and waits until the callers' Envoys are ready.
    pub async fn start(net: Net, plan: Plan<'_>) -> Result<Self> {
        let mut objects = plan.objects;
        objects.push(Object::node("node", "region", "zone"));
        let mut pods = Vec::new();
        for (n, namespace) in (1..).zip(plan.namespaces) {
            // Below those that `Net::pod` gives.
            let v4: IpAddr = Ipv4Addr::new(10, 244, 0, 100 + u8::try_from(n)?).into();
            let v6: IpAddr = Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0x100 + n).into();
            objects.push(Object::namespace(namespace));
            objects.push(Object::pod(namespace, "caller", "node", &[v4, v6]));
            pods.push((*namespace, [v4, v6]));
        }
        let world = World::new()?;
        world.put("all", &objects)?;
        let mut aether = Aether::start(&net, world.path(), plan.serve)?;
        aether.serving(LIMIT).await?;
        let mut callers = Vec::new();
        for (namespace, addresses) in &pods {
            let (who, how) = ((*namespace, "caller"), (plan.over, plan.bootstrap));
            callers.push(Sidecar::start(&net, &aether, who, addresses, &plan.redirect, how)?);
        }
        for caller in &mut callers {
            caller.ready(LIMIT).await?;
        }
        Ok(Self { callers, aether, world, net })
    }

    /// The first caller.
    pub fn caller(&self) -> Result<&Sidecar> {
        self.callers.first().context("this mesh has no caller")
    }
}
