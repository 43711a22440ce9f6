//! A large folder of manifests, as `kubectl get -o yaml` would write it, to measure with.

use std::fmt::Write as _;

use anyhow::Result;

use crate::world::World;

/// How many objects a file holds.
const IN_A_FILE: usize = 100;

/// How large.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Services, in namespaces `team-0` to `team-49`. Of ten, seven have one HTTP port, one has two, one speaks TCP,
    /// and one both.
    pub services: usize,
    /// Endpoints of each.
    pub endpoints: usize,
    /// Managed pods, on 50 nodes in three zones. Only the first, `team-0/pod-0`, has a proxy in what is measured.
    pub pods: usize,
}

/// Writes it.
pub fn write(world: &World, size: Size) -> Result<()> {
    let mut places = String::new();
    for n in 0..50 {
        let zone = n % 3;
        write!(places, "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-{n}\n")?;
        write!(
            places,
            "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: node-{n}\n  labels:\n    \
             topology.kubernetes.io/region: here\n    topology.kubernetes.io/zone: here-{zone}\n"
        )?;
    }
    world.put_text("places.yaml", &places)?;
    let all = |kind: &str, count: usize, one: &dyn Fn(usize) -> Result<String>| -> Result<()> {
        let numbers: Vec<usize> = (0..count).collect();
        for (file, some) in numbers.chunks(IN_A_FILE).enumerate() {
            let items = some.iter().map(|n| one(*n)).collect::<Result<String>>()?;
            let list = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
            world.put_text(&format!("{kind}-{file:04}.yaml"), &list)?;
        }
        Ok(())
    };
    all("services", size.services, &service)?;
    all("slices", size.services, &|n| slice(n, size.endpoints))?;
    all("pods", size.pods, &|n| Ok(pod(n)))
}

/// Gives the first endpoint of the n-th slice an address that it never had. Each `time` must be another, below 60,000.
pub fn move_endpoint(world: &World, size: Size, n: usize, time: usize) -> Result<()> {
    let first = n / IN_A_FILE * IN_A_FILE;
    let mut items = String::new();
    for other in first..(first + IN_A_FILE).min(size.services) {
        let text = slice(other, size.endpoints)?;
        let old = format!("- {}\n", address(10, 128, other * size.endpoints));
        let new = format!("- {}\n", address(10, 250, time + 1));
        items.push_str(&if other == n { text.replacen(&old, &new, 1) } else { text });
    }
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    world.put_text(&format!("slices-{:04}.yaml", n / IN_A_FILE), &list)
}

/// Adds the n-th Service, beyond those that there are, with its endpoints.
pub fn add_service(world: &World, size: Size, n: usize) -> Result<()> {
    let items = service(n)? + &slice(n, size.endpoints)?;
    world.put_text(
        &format!("added-{n}.yaml"),
        &format!("apiVersion: v1\nkind: List\nitems:\n{items}"),
    )
}

/// The ports of a Service: name, number, protocol.
fn ports(n: usize) -> &'static [(&'static str, u16, &'static str)] {
    match n % 10 {
        0 => &[("raw", 5432, "postgres")],
        1 => &[("web", 80, "http"), ("raw", 9000, "echo")],
        2 => &[("web", 80, "http"), ("status", 8081, "http")],
        _ => &[("web", 80, "http")],
    }
}

/// The address of the n-th of something, in a range of 65,536 times `of`.
fn address(first: u8, second: usize, n: usize) -> String {
    format!("{first}.{}.{}.{}", second + (n >> 16), n >> 8 & 0xff, n & 0xff)
}

fn service(n: usize) -> Result<String> {
    let (team, ip) = (n % 50, address(10, 96, n + 1));
    let mut text = format!(
        "- apiVersion: v1\n  kind: Service\n  metadata:\n    creationTimestamp: \"2026-01-01T00:00:00Z\"\n    \
         labels:\n      aether.io/mesh-service: \"true\"\n      app: service-{n}\n    name: service-{n}\n    \
         namespace: team-{team}\n    resourceVersion: \"{n}\"\n    uid: 3d29322c-002c-84ee-bfd9-{n:012}\n  spec:\n    \
         clusterIP: {ip}\n    clusterIPs:\n    - {ip}\n    internalTrafficPolicy: Cluster\n    ipFamilies:\n    \
         - IPv4\n    ipFamilyPolicy: SingleStack\n    ports:\n"
    );
    for (name, port, protocol) in ports(n) {
        write!(
            text,
            "    - appProtocol: {protocol}\n      name: {name}\n      port: {port}\n      protocol: TCP\n      \
             targetPort: {port}\n"
        )?;
    }
    text.push_str("    selector:\n      app: x\n    sessionAffinity: None\n    type: ClusterIP\n");
    Ok(text)
}

fn slice(n: usize, endpoints: usize) -> Result<String> {
    let team = n % 50;
    let mut text =
        String::from("- addressType: IPv4\n  apiVersion: discovery.k8s.io/v1\n  endpoints:\n");
    for endpoint in 0..endpoints {
        let pod = n * endpoints + endpoint;
        let (ip, node) = (address(10, 128, pod), pod % 50);
        write!(
            text,
            "  - addresses:\n    - {ip}\n    conditions:\n      ready: true\n      serving: true\n      \
             terminating: false\n    nodeName: node-{node}\n    targetRef:\n      kind: Pod\n      name: pod-{pod}\n      \
             namespace: team-{team}\n      uid: 78a855f2-df0e-8429-9e3c-{pod:012}\n    zone: here-{zone}\n",
            zone = node % 3
        )?;
    }
    write!(
        text,
        "  kind: EndpointSlice\n  metadata:\n    labels:\n      kubernetes.io/service-name: service-{n}\n    \
         name: service-{n}-abcde\n    namespace: team-{team}\n    resourceVersion: \"{n}\"\n  ports:\n"
    )?;
    for (name, port, _) in ports(n) {
        write!(text, "  - name: {name}\n    port: {port}\n    protocol: TCP\n")?;
    }
    Ok(text)
}

fn pod(n: usize) -> String {
    let (team, ip, node) = (n % 50, address(10, 192, n + 1), n % 50);
    format!(
        "- apiVersion: v1\n  kind: Pod\n  metadata:\n    labels:\n      aether.io/managed: \"true\"\n      app: x\n    \
         name: pod-{n}\n    namespace: team-{team}\n    uid: 78a855f2-df0e-8429-9e3d-{n:012}\n  spec:\n    \
         containers:\n    - image: registry.invalid/app:1\n      name: app\n    nodeName: node-{node}\n    \
         serviceAccountName: default\n  status:\n    conditions:\n    - lastTransitionTime: \"2026-01-01T00:00:00Z\"\n      \
         status: \"True\"\n      type: Ready\n    phase: Running\n    podIP: {ip}\n    podIPs:\n    - ip: {ip}\n"
    )
}
