//! What the index keeps of each object: the little that the projection looks at.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::model::{Health, Locality, ObjectRef, Protocol, TrafficScope, Upstreams};

/// The ServiceAccount that every pod has unless it names another; it stands for no service.
const DEFAULT_ACCOUNT: &str = "default";

/// Of a labelled Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFacts {
    /// The object, for findings.
    pub object: ObjectRef,
    /// Where it came from, for findings.
    pub origin: Option<Arc<str>>,
    /// The mesh name.
    pub mesh_name: Arc<str>,
    /// Whether its endpoints come from the registry because it was generated.
    pub generated: bool,
    /// `creationTimestamp` in seconds since 1970; `None` counts as the youngest.
    pub created: Option<i64>,
    /// The ClusterIPs, primary first.
    pub cluster_ips: Vec<IpAddr>,
    /// `clusterIP: None`.
    pub headless: bool,
    /// Whether a selector names its pods.
    pub selector: bool,
    /// The primary family, where the Service says it.
    pub primary_ipv6: Option<bool>,
    /// The TCP ports in the Service's order, each number once; never empty.
    pub ports: Vec<PortFacts>,
    /// `aether.io/app-protocol`, where it is there: it wins over what the ports say.
    pub app_protocol: Option<Arc<str>>,
    /// `aether.io/port`: where registry pods serve that don't say it themselves.
    pub workload_port: u16,
    /// Which endpoints a proxy uses.
    pub scope: TrafficScope,
}

/// Of a Service's TCP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFacts {
    /// The port's name; empty where it has none.
    pub name: Arc<str>,
    /// Its number.
    pub number: u16,
    /// Its own `appProtocol`, where it has one.
    pub app_protocol: Option<Arc<str>>,
    /// What it speaks, by the one or the other.
    pub protocol: Protocol,
}

/// Of a Service that is not captured, whatever the reason: enough to say so of whoever asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherService {
    /// The object.
    pub object: ObjectRef,
    /// Whether its label asks for it to be captured.
    pub labelled: bool,
    /// The name that an ExternalName Service stands for.
    pub external_name: Option<Arc<str>>,
    /// The ClusterIPs, primary first.
    pub cluster_ips: Vec<IpAddr>,
    /// `clusterIP: None`.
    pub headless: bool,
}

/// Of an EndpointSlice that belongs to a Service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SliceFacts {
    /// Name and number of its TCP ports that have a number.
    pub ports: Vec<(Arc<str>, u16)>,
    /// Its endpoints with a usable address.
    pub endpoints: Vec<SliceEndpoint>,
}

/// Of an endpoint of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// The first address.
    pub address: IpAddr,
    /// How fit it is.
    pub health: Health,
    /// The node it runs on.
    pub node: Option<Arc<str>>,
    /// The zone that the slice itself gives.
    pub zone: Option<Arc<str>>,
    /// The pod behind it, in the slice's namespace.
    pub pod: Option<Arc<str>>,
}

/// Of a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFacts {
    /// The object, for findings.
    pub object: ObjectRef,
    /// Where it came from, for findings.
    pub origin: Option<Arc<str>>,
    /// Its uid.
    pub uid: Option<Arc<str>>,
    /// What its own label says of being in the mesh; `None` where it has none.
    pub managed: Option<bool>,
    /// `creationTimestamp` in seconds since 1970; `None` counts as the youngest.
    pub created: Option<i64>,
    /// Phase Running.
    pub running: bool,
    /// Phase Succeeded or Failed: it will not run again.
    pub finished: bool,
    /// `hostNetwork`.
    pub host_network: bool,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// How fit it is as an endpoint of the registry.
    pub health: Health,
    /// The ServiceAccount it runs as.
    pub service_account: Arc<str>,
    /// The node it runs on.
    pub node: Option<Arc<str>>,
    /// `endpoint.aether.io/port`.
    pub port: Option<u16>,
    /// `endpoint.aether.io/protocol`.
    pub protocol: Option<Arc<str>>,
    /// `endpoint.aether.io/weight`.
    pub weight: u32,
    /// `config.aether.io/upstreams`.
    pub upstreams: Upstreams,
    /// The annotations `capture.aether.io/…`, where there are any.
    pub redirection: Option<Box<RedirectionFacts>>,
}

/// What a pod's own annotations say of its redirection. One with a wrong value says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedirectionFacts {
    /// `capture.aether.io/redirect-all`: in place of the capture mode.
    pub redirect_all: Option<bool>,
    /// `capture.aether.io/exclude-outbound-ports`: destination ports that are left alone.
    pub ports: Vec<RangeInclusive<u16>>,
    /// `capture.aether.io/exclude-outbound-ip-ranges`: destinations that are left alone.
    pub ranges: Vec<IpRange>,
}

/// An address and how many bits of it count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    /// The address.
    pub address: IpAddr,
    /// The bits that count: at most 32 of an IPv4 address, 128 of an IPv6 one.
    pub width: u8,
}

impl IpRange {
    /// Whether an address lies in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (own, other, bits) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits().into(), other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let differ: u128 = own ^ other;
        let beyond = bits - u32::from(self.width).min(bits);
        differ.checked_shr(beyond).unwrap_or_default() == 0
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.width)
    }
}

impl PodFacts {
    /// Whether the registry takes it once it runs: managed, in a network of its own. One of the
    /// ServiceAccount `default` must say where it serves.
    pub fn registered(&self) -> bool {
        self.managed == Some(true)
            && !self.host_network
            && (&*self.service_account != DEFAULT_ACCOUNT || self.port.is_some())
    }

    /// Whether the registry for the generator has no use for the difference: a pod becomes ready,
    /// or gets an address, more often than it begins to run.
    pub fn registers_like(&self, other: &Self) -> bool {
        let of = |pod: &Self| (pod.registered(), pod.running, pod.finished, pod.port, pod.created);
        of(self) == of(other)
            && self.service_account == other.service_account
            && self.protocol == other.protocol
    }
}

/// Of a Node: its locality, where its labels give one.
pub type NodeFacts = Option<Locality>;
