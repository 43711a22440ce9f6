//! What the proxy does with a connection that reached it, decided from its own resources.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::core::v3::SubstitutionFormatString;
use envoy_types::pb::envoy::config::listener::v3::FilterChain;

use super::envoy::{self, Arrival, Capture, Inspects, Leads, Routed, Undecodable, reply};
use super::evidence::{Evidence, object_of};
use super::explanation::{Outcome, Path, Step, Topic};
use super::words::list;
use super::{Destination, Speaks};
use crate::model::MeshService;
use crate::translate::naming;
use crate::xds::View;

/// A connection at the capture listener.
pub(super) struct Carried<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) view: &'a View,
    pub(super) capture: &'a Capture,
    /// The listener's name.
    pub(super) listener: &'a str,
    pub(super) destination: &'a Destination,
    pub(super) to: Option<IpAddr>,
    pub(super) inspects: Inspects,
}

impl Carried<'_> {
    /// What becomes of a connection that speaks one way.
    pub(super) fn path(&self, speaks: Speaks) -> Result<Path, Undecodable> {
        let arrival = Arrival {
            to: self.to,
            port: self.destination.port,
            tls: self.inspects.tls && speaks == Speaks::Tls,
            protocol: (self.inspects.http && speaks == Speaks::Http).then_some("http/1.1"),
        };
        let Some(chain) = self.capture.chain(&arrival)? else {
            let why = "no filter chain takes it".to_owned();
            let steps = vec![Step::new(Topic::Chain, why.clone())];
            return Ok(Path { speaks: vec![speaks], steps, outcome: Outcome::Closed { why } });
        };
        let mut steps = vec![self.chain(chain)];
        let outcome = match Leads::of(chain, self.destination.port)? {
            Leads::Http { .. } if speaks != Speaks::Http => {
                Outcome::Closed { why: "what is not HTTP gets 400 Bad Request there".to_owned() }
            }
            Leads::Http { routes, replies } => self.http(&routes, replies.as_ref(), &mut steps)?,
            Leads::Tcp { cluster } => {
                if let Some(found) = envoy::cluster(self.view, &cluster)? {
                    self.upstream(&found, None, &mut steps)?
                } else {
                    let rule = "a TCP connection to a cluster that does not exist is closed";
                    let step = Step::new(Topic::Cluster, format!("{cluster} does not exist"));
                    steps.push(step.because(format!("Cluster {cluster}"), "", "", rule));
                    Outcome::Closed { why: self.no_such_port(&cluster) }
                }
            }
        };
        Ok(Path { speaks: vec![speaks], steps, outcome })
    }

    /// The service whose address it is, by the chains.
    fn owner(&self) -> Option<&MeshService> {
        let mut services = self.evidence.projection.services.values();
        services
            .find(|one| self.to.is_some_and(|ip| one.owned_ips.contains(&ip)))
            .map(AsRef::as_ref)
    }

    fn chain(&self, chain: &FilterChain) -> Step {
        let name = &chain.name;
        let on = chain.filter_chain_match.clone().unwrap_or_default();
        let object = format!("Listener {}", self.listener);
        let field = format!("filter_chains[{name}]");
        let by_port = on.destination_port.is_some();
        let by_bytes = match (on.application_protocols.is_empty(), on.transport_protocol.as_str()) {
            (false, _) => Some("bytes that are HTTP"),
            (true, "raw_buffer") => Some("bytes that are not TLS"),
            _ => None,
        };
        let says = |what: &str| Step::new(Topic::Chain, format!("{name} takes {what}"));
        if by_port {
            let rule = "a connection to the listener's own port would be a loop";
            return says("connections to its own port").because(object, field, "", rule);
        }
        let address = on.prefix_ranges.first().map(|range| range.address_prefix.clone());
        match (address, by_bytes, self.owner()) {
            (Some(address), bytes, owner) => {
                let mixed = owner.is_some_and(MeshService::has_http);
                let step = match bytes {
                    Some(bytes) => says(&format!("{bytes}, to the address {address}")),
                    None if mixed => says(&format!("all else that goes to the address {address}")),
                    None => says(&format!("whatever goes to the address {address}")),
                };
                let rule = "a Service with a TCP port has chains of its own, by its address";
                match owner {
                    Some(owner) => step.because(object_of(owner), "spec.clusterIPs", address, rule),
                    None => step.because(object, field, address, rule),
                }
            }
            (None, Some(bytes), _) => {
                let rule = "what goes to no address of a Service with a TCP port is told by what it speaks";
                says(&format!("{bytes}, to any other address")).because(object, field, "", rule)
            }
            (None, None, owner) => {
                let rule = "what no other chain takes";
                let step = says("everything else").because(object, field, "", rule);
                match owner.filter(|owner| !owner.has_tcp()) {
                    Some(owner) => step.because(
                        object_of(owner),
                        "spec.ports",
                        list(owner.ports.iter().map(|port| port.number)),
                        "all its ports are HTTP, so its address has no chain of its own",
                    ),
                    None => step,
                }
            }
        }
    }

    fn http(
        &self,
        routes: &str,
        replies: Option<&SubstitutionFormatString>,
        steps: &mut Vec<Step>,
    ) -> Result<Outcome, Undecodable> {
        let authority = self.destination.authority();
        let Some(table) = envoy::routes(self.view, routes)? else {
            let why = format!("its table {routes} is not served");
            return Ok(Outcome::Closed { why });
        };
        let Some(routed) = envoy::route(&table, &authority)? else {
            let body = reply(replies, "route_not_found", "");
            steps.push(Step::new(Topic::Route, format!("no route of {routes} takes {authority}")));
            return Ok(Outcome::Answered { status: 404, body });
        };
        steps.push(Self::route(&routed, routes, &authority));
        match routed.to {
            Err((status, body)) => {
                let body = reply(replies, "direct_response", &body);
                Ok(Outcome::Answered { status, body })
            }
            Ok(cluster) => {
                if let Some(found) = envoy::cluster(self.view, &cluster)? {
                    return self.upstream(&found, Some(replies), steps);
                }
                steps.push(Step::new(Topic::Cluster, format!("{cluster} does not exist")));
                let body = reply(replies, "cluster_not_found", "");
                Ok(Outcome::Answered { status: 503, body })
            }
        }
    }

    fn route(routed: &Routed, table: &str, authority: &str) -> Step {
        let object = format!("RouteConfiguration {table}");
        let name = routed.host.strip_prefix(&format!("{table}/")).unwrap_or(&routed.host);
        let field = format!("virtual_hosts[{name}].domains");
        if name == naming::ANY {
            let says = format!("the catch-all takes the authority {authority:?}");
            let rule = "it is the name of no mesh service that this pod sees";
            return Step::new(Topic::Route, says).because(object, field, &*routed.domain, rule);
        }
        let says = format!("virtual host {name} takes the authority {authority:?}");
        let rule = "a name or an address of the service; the port does not count here";
        let step = Step::new(Topic::Route, says).because(&object, field, &*routed.domain, rule);
        let field = format!("virtual_hosts[{name}].routes");
        let rule = match &routed.to {
            Ok(cluster) => format!("it leads to {cluster}"),
            Err(_) => "the authority names a port that the service does not have".to_owned(),
        };
        let asks = if routed.on.is_empty() { "is any other" } else { routed.on.as_str() };
        step.because(object, field, format!("where the authority {asks}"), rule)
    }

    /// Why there is no cluster of this name for a TCP connection.
    fn no_such_port(&self, cluster: &str) -> String {
        let port = self.destination.port;
        match self.owner() {
            Some(owner) if cluster != naming::NOWHERE => {
                let ports = list(owner.ports.iter().map(|port| port.number));
                format!("{} has no port {port}: it has {ports}", object_of(owner))
            }
            _ => "it would be a loop".to_owned(),
        }
    }
}
