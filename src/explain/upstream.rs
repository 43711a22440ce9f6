//! From a cluster to the endpoints: whom the proxy sends it to, and whom not.

use std::net::SocketAddr;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::SubstitutionFormatString;

use super::carry::Carried;
use super::envoy::{self, Http, Undecodable, Upstream, Whither, reply, targets};
use super::evidence::object_of;
use super::explanation::{Outcome, Step, Topic};
use super::words::{count, list};
use super::{Host, Target};
use crate::index::APP_PROTOCOL;
use crate::model::{Endpoint, Health, MeshPort, MeshService, ServiceKey, TrafficScope, quoted};
use crate::translate::naming::MESH_PORT;

/// How many endpoints are told of one by one.
const MOST: usize = 12;

/// How the bodies of the proxy's own answers look; `None` for what is no HTTP.
type Replies<'r> = Option<Option<&'r SubstitutionFormatString>>;

impl Carried<'_> {
    /// Where a cluster sends it.
    pub(super) fn upstream(
        &self,
        cluster: &Cluster,
        replies: Replies<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<Outcome, Undecodable> {
        let name = &cluster.name;
        let upstream = Upstream::of(cluster)?;
        let assignment = match upstream.whither {
            Whither::Assignment(assignment) => assignment,
            Whither::OriginalDestination => {
                let rule =
                    "to the address that the client asked for, in the protocol that it speaks";
                let says = format!("{name} sends it on to where it was going");
                let object = format!("Cluster {name}");
                steps.push(Step::new(Topic::Cluster, says).because(
                    object,
                    "type",
                    "ORIGINAL_DST",
                    rule,
                ));
                return Ok(Outcome::Passthrough { to: self.original() });
            }
        };
        let mut endpoints =
            envoy::assignment(self.view, &assignment)?.map(|all| targets(&all)).unwrap_or_default();
        let (key, port) = assignment.rsplit_once(':').unwrap_or((&assignment, ""));
        let port: u16 = port.parse().unwrap_or_default();
        let service = key.parse::<ServiceKey>().ok().and_then(|key| self.evidence.service(&key));
        let said = service.and_then(|service| Some((service.as_ref(), service.port(port)?)));
        steps.push(match said {
            Some((service, port)) => self.cluster(name, upstream.http, service, port),
            None => Step::new(Topic::Cluster, format!("{name} has the endpoints of {assignment}")),
        });
        for target in &mut endpoints {
            let pod = service.and_then(|service| self.pod_at(service, target.address));
            target.pod = pod;
        }
        steps.push(self.endpoints(&assignment, &endpoints, said));
        let answer = endpoints.is_empty().then(|| match replies {
            Some(replies) => {
                let body = reply(replies, "no_healthy_upstream", "no healthy upstream");
                format!("503 with the body {:?}", body.trim_end())
            }
            None => "a connection that is accepted and closed".to_owned(),
        });
        let service = key.to_owned();
        Ok(Outcome::Service { service, port, cluster: name.clone(), endpoints, answer })
    }

    /// Where it was going, if that is known.
    fn original(&self) -> Option<String> {
        let port = self.destination.port;
        match (self.to, &self.destination.host) {
            (Some(ip), _) => Some(SocketAddr::new(ip, port).to_string()),
            (None, Host::Name(_) | Host::Ip(_)) => None,
        }
    }

    fn cluster(
        &self,
        name: &str,
        http: Option<Http>,
        service: &MeshService,
        port: &MeshPort,
    ) -> Step {
        let object = object_of(service);
        let speaks = match http {
            Some(Http::Http1) => "speaks HTTP/1.1",
            Some(Http::Http2) => "speaks HTTP/2",
            Some(Http::AsClient) => "speaks the client's version of HTTP",
            None => "passes the bytes on as they are",
        };
        let says = format!("{name} is port {} of {object}, and {speaks}", port.number);
        let mut step = Step::new(Topic::Cluster, says);
        if port.number != self.destination.port {
            let has = list(service.ports.iter().map(|one| one.number));
            let rule = match self.destination.port {
                MESH_PORT => "18081 means the default port: the one numbered so, else the first",
                _ => {
                    "an authority need not name port 80, and there is none: the default port is meant, 18081 or else the first"
                }
            };
            step = step.because(&object, "spec.ports", has, rule);
        }
        if http.is_none() {
            return step;
        }
        let Some(facts) = self.evidence.facts_of(service) else { return step };
        let own = facts.ports.iter().find(|one| one.number == port.number);
        let field = format!("spec.ports[port={}].appProtocol", port.number);
        let is = super::service::protocol(port.protocol);
        match (&facts.app_protocol, own.and_then(|own| own.app_protocol.as_ref())) {
            (Some(word), _) => {
                let rule = format!("the annotation wins over the ports' own appProtocol: {is}");
                let field = format!("metadata.annotations[{APP_PROTOCOL}]");
                step.because(object, field, quoted(word), rule)
            }
            (None, Some(word)) => {
                step.because(object, field, quoted(word), format!("that is {is}"))
            }
            (None, None) => step.because(
                object,
                field,
                "(absent)",
                format!("a port that declares nothing is {is}"),
            ),
        }
    }

    fn endpoints(
        &self,
        assignment: &str,
        targets: &[Target],
        said: Option<(&MeshService, &MeshPort)>,
    ) -> Step {
        let says = match targets {
            [] => format!("{assignment} has no endpoint that can take it"),
            [one] => format!("it goes to {}", told(one)),
            many => format!("it goes to one of {}", count(many.len(), "endpoint")),
        };
        let mut step = Step::new(Topic::Endpoints, says);
        if let Some((service, _)) = said {
            step = self.whence(service, step);
            step = self.nearness(service, step);
        }
        if targets.len() > 1 {
            for target in targets.iter().take(MOST) {
                step = step.note(told(target));
            }
            if let Some(more) = targets.len().checked_sub(MOST).filter(|more| *more > 0) {
                step = step.note(format!("and {more} more"));
            }
        }
        let Some((service, port)) = said else { return step };
        let left_out = port.endpoints.iter().filter_map(|endpoint| {
            let at = SocketAddr::new(endpoint.address, endpoint.port);
            let used = targets.iter().any(|target| target.address == at);
            let pod = self.pod_at(service, at).map(|pod| format!(" ({pod})")).unwrap_or_default();
            let why = self.why(endpoint, service, used)?;
            Some(format!("{at}{pod}: {why}"))
        });
        let left_out: Vec<_> = left_out.collect();
        if port.endpoints.is_empty() {
            step = step.note(format!(
                "{} has no endpoint at all on this port, ready or not",
                object_of(service)
            ));
        }
        let more = left_out.len().saturating_sub(MOST);
        for line in left_out.into_iter().take(MOST) {
            step = step.note(line);
        }
        if more > 0 { step.note(format!("and {more} more that are left out")) } else { step }
    }

    /// What there is to say of an endpoint's fitness.
    fn why(&self, endpoint: &Endpoint, service: &MeshService, used: bool) -> Option<&'static str> {
        let pod = self.evidence.about.pod.as_ref();
        let here = pod.and_then(|pod| pod.node.as_ref());
        let elsewhere = here.is_none() || endpoint.node.as_ref() != here;
        match endpoint.health {
            Health::Draining if used => Some("terminating, and used since none is ready"),
            _ if used => None,
            _ if service.scope == TrafficScope::Node && elsewhere => {
                Some("left out: it is not on the pod's node (internalTrafficPolicy: Local)")
            }
            Health::Unready => Some("left out: it is not ready"),
            Health::Draining => Some("left out: it terminates, and others are ready"),
            Health::Ready => Some("left out by the proxy's view"),
        }
    }

    /// Which objects the endpoints come from.
    fn whence(&self, service: &MeshService, step: Step) -> Step {
        let object = object_of(service);
        let facts = self.evidence.facts_of(service);
        let behind = self.evidence.behind.get(&object);
        let mut slices: Vec<_> = behind
            .into_iter()
            .flat_map(|all| all.values())
            .filter_map(|one| one.slice.clone())
            .collect();
        slices.sort();
        slices.dedup();
        if facts.is_some_and(|facts| facts.generated || (!facts.selector && slices.is_empty())) {
            let rule = "its endpoints are the running managed pods whose ServiceAccount bears the mesh name";
            return step.because(object, "spec.selector", "(absent)", rule);
        }
        let rule = "endpoints come from the Service's slices, ports by their names";
        match slices.as_slice() {
            [] => step.because(
                object,
                "spec.selector",
                "",
                "it has no EndpointSlice with an endpoint",
            ),
            slices => slices
                .iter()
                .take(MOST)
                .fold(step, |step, slice| step.because(slice, "endpoints", "", rule)),
        }
    }

    /// Why some are nearer than others.
    fn nearness(&self, service: &MeshService, step: Step) -> Step {
        let object = object_of(service);
        let place = self.evidence.about.pod.as_ref().and_then(|pod| {
            let known = &self.evidence.projection.pods;
            let key =
                crate::model::PodKey::new(pod.object.namespace.clone(), pod.object.name.clone());
            known.get(&key).map(|pod| pod.place.clone())
        });
        let step = match service.scope {
            TrafficScope::Node => {
                let rule = "only endpoints on the pod's own node are used";
                return step.because(object, "spec.internalTrafficPolicy", "Local", rule);
            }
            TrafficScope::PreferNode => {
                let rule = "endpoints on the pod's own node come first";
                step.because(object, "spec.trafficDistribution", "PreferSameNode", rule)
            }
            TrafficScope::Cluster => step,
        };
        let own = place.and_then(|place| Some((place.node?, place.locality?)));
        match own {
            Some((node, locality)) => step.because(
                format!("Node {node}"),
                "metadata.labels[topology.kubernetes.io/zone]",
                quoted(&locality.zone),
                "endpoints of the pod's zone come first, then of its region, then the rest",
            ),
            None => step,
        }
    }

    fn pod_at(&self, service: &MeshService, at: SocketAddr) -> Option<String> {
        let behind = self.evidence.behind.get(&object_of(service))?.get(&at.ip())?;
        behind.pod.as_ref().map(ToString::to_string)
    }
}

/// An endpoint in words.
fn told(target: &Target) -> String {
    let pod = target.pod.as_ref().map(|pod| format!(" ({pod})")).unwrap_or_default();
    let place = target.locality.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
    let weight =
        if target.weight == 1 { String::new() } else { format!(", weight {}", target.weight) };
    format!("{}{pod}{place}: healthy, priority {}{weight}", target.address, target.priority)
}
