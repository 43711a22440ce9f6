//! Reading a Service.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};

use super::values::{self, usable};
use crate::index::Report;
use crate::index::facts::{PortFacts, ServiceFacts};
use crate::index::keys;
use crate::model::{ObjectRef, Protocol, Reason, TrafficScope, is_dns_label, quoted};

/// Where workloads serve that say nothing (`aether.io/port`).
const WORKLOAD_PORT: u16 = 8080;

/// The facts of a Service; `None` for one that is not labelled, is not captured, or has a value
/// that cannot be used. All but the first are reported.
pub fn service(
    service: &Service,
    object: &ObjectRef,
    origin: Option<Arc<str>>,
    report: &mut Report,
) -> Option<ServiceFacts> {
    if values::of(service.metadata.labels.as_ref(), keys::MESH_SERVICE) != Some("true") {
        return None;
    }
    let empty = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&empty);
    if spec.type_.as_deref() == Some("ExternalName") {
        report.warning(
            Reason::NotCaptured,
            "spec.type",
            format!(
                "an ExternalName Service ({}) is not captured and claims no name",
                quoted(spec.external_name.as_deref().unwrap_or_default())
            ),
            "remove its label aether.io/mesh-service, or make it a Service with a ClusterIP",
        );
        return None;
    }
    let annotation = |key: &str| values::of(service.metadata.annotations.as_ref(), key);
    let mesh_name = mesh_name(object, annotation(keys::SERVICE), report);
    let workload_port = workload_port(annotation(keys::PORT), report);
    let generated = generated(object, annotation(keys::GENERATED_FOR), report);
    let cluster_ips = cluster_ips(spec, report);
    let ports = ports(spec, annotation(keys::APP_PROTOCOL), report)?;
    let cluster_ips = cluster_ips?;
    let headless = spec.cluster_ip.as_deref() == Some("None")
        || spec.cluster_ips.iter().flatten().any(|ip| ip == "None");
    let family = spec.ip_families.as_ref().and_then(|f| f.first()).map(|f| f == "IPv6");
    let created = service.metadata.creation_timestamp.as_ref();
    Some(ServiceFacts {
        object: object.clone(),
        origin,
        mesh_name: mesh_name?,
        generated: generated?,
        created: created.map(|time| time.0.as_second()),
        headless,
        selector: spec.selector.as_ref().is_some_and(|selector| !selector.is_empty()),
        primary_ipv6: family.or_else(|| cluster_ips.first().map(IpAddr::is_ipv6)),
        cluster_ips,
        ports,
        app_protocol: annotation(keys::APP_PROTOCOL).map(Arc::from),
        workload_port: workload_port?,
        scope: scope(spec, report),
    })
}

/// The mesh name that a Service claims; `None` for one that claims none.
pub fn mesh_name_of(read: &Service) -> Option<Arc<str>> {
    let meta = &read.metadata;
    let name = |name: &Option<String>| name.as_deref().unwrap_or_default().to_owned();
    let object = ObjectRef::new("Service", name(&meta.namespace), name(&meta.name));
    let facts = service(read, &object, None, &mut Report::new(object.clone(), None))?;
    Some(facts.mesh_name)
}

fn mesh_name(object: &ObjectRef, given: Option<&str>, report: &mut Report) -> Option<Arc<str>> {
    let (name, field) = match given {
        Some(name) => (name, values::annotation(keys::SERVICE)),
        None => (&*object.name, "metadata.name".to_owned()),
    };
    if is_dns_label(name) {
        return Some(name.into());
    }
    report.problem(
        Reason::InvalidValue,
        &field,
        format!("{} is no mesh name, so the Service is left out", quoted(name)),
        "give a DNS label in aether.io/service: at most 63 of a-z, 0-9 and '-', with a letter or digit first and last",
    );
    None
}

fn workload_port(given: Option<&str>, report: &mut Report) -> Option<u16> {
    let Some(text) = given else { return Some(WORKLOAD_PORT) };
    let port = values::port(text);
    if port.is_none() {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::PORT),
            format!("{} is no port, so the Service is left out", quoted(text)),
            "give a number from 1 to 65535",
        );
    }
    port
}

/// Whether a Service is a generated one: the annotation names a ServiceAccount of its namespace.
fn generated(object: &ObjectRef, given: Option<&str>, report: &mut Report) -> Option<bool> {
    let Some(text) = given else { return Some(false) };
    let whole = text.split_once('/').is_some_and(|(namespace, account)| {
        *namespace == *object.namespace && !account.is_empty() && !account.contains('/')
    });
    if !whole {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::GENERATED_FOR),
            format!("{} names no ServiceAccount here, so the Service is left out", quoted(text)),
            "write <namespace>/<serviceaccount> with the Service's own namespace, or remove the annotation",
        );
    }
    whole.then_some(true)
}

fn cluster_ips(spec: &ServiceSpec, report: &mut Report) -> Option<Vec<IpAddr>> {
    let many = spec.cluster_ips.as_ref().filter(|ips| !ips.is_empty());
    let texts = many.map_or(spec.cluster_ip.as_slice(), Vec::as_slice);
    let mut ips = Vec::new();
    for text in texts.iter().filter(|text| !text.is_empty() && *text != "None") {
        match text.parse::<IpAddr>() {
            Ok(ip) if usable(ip) => {
                if !ips.contains(&ip) {
                    ips.push(ip);
                }
            }
            _ => {
                report.problem(
                    Reason::InvalidValue,
                    "spec.clusterIPs",
                    format!("{} is no ClusterIP, so the Service is left out", quoted(text)),
                    "leave the field to Kubernetes, or give a unicast IPv4 or IPv6 address",
                );
                return None;
            }
        }
    }
    Some(ips)
}

/// The TCP ports; `None` where there is none, or one cannot be used.
fn ports(
    spec: &ServiceSpec,
    annotated: Option<&str>,
    report: &mut Report,
) -> Option<Vec<PortFacts>> {
    let mut ports: Vec<PortFacts> = Vec::new();
    let mut others = Vec::new();
    for (at, port) in spec.ports.iter().flatten().enumerate() {
        let transport = port.protocol.as_deref().unwrap_or("TCP");
        if transport != "TCP" {
            others.push(format!("{} ({transport})", port.port));
            continue;
        }
        let field = format!("spec.ports[{at}].port");
        let Some(number) = u16::try_from(port.port).ok().filter(|number| *number > 0) else {
            report.problem(
                Reason::InvalidValue,
                &field,
                format!("{} is no port, so the Service is left out", port.port),
                "give a number from 1 to 65535",
            );
            return None;
        };
        if ports.iter().any(|other| other.number == number) {
            report.problem(
                Reason::InvalidValue,
                &field,
                format!("the port {number} stands twice, so only its first form counts"),
                "give each TCP port of a Service once",
            );
            continue;
        }
        let own = port.app_protocol.as_deref();
        let word = annotated.or(own).unwrap_or_default();
        ports.push(PortFacts {
            name: port.name.as_deref().unwrap_or_default().into(),
            number,
            app_protocol: own.map(Arc::from),
            protocol: Protocol::from_word(word),
        });
    }
    if ports.is_empty() {
        report.warning(
            Reason::NotCaptured,
            "spec.ports",
            if others.is_empty() {
                "a Service without a port is not captured and claims no name".to_owned()
            } else {
                format!(
                    "none of its ports is TCP ({}), so it is not captured and claims no name",
                    others.join(", ")
                )
            },
            "give it a TCP port, or remove its label aether.io/mesh-service",
        );
        return None;
    }
    if !others.is_empty() {
        report.warning(
            Reason::NotCaptured,
            "spec.ports",
            format!(
                "TCP alone is captured; its port {} is reached as without the mesh",
                others.join(", ")
            ),
            "nothing is to be done where that is meant",
        );
    }
    Some(ports)
}

/// Which endpoints a proxy uses; what is not honoured is reported.
fn scope(spec: &ServiceSpec, report: &mut Report) -> TrafficScope {
    if spec.session_affinity.as_deref() == Some("ClientIP") {
        report.warning(
            Reason::NotSupported,
            "spec.sessionAffinity",
            "\"ClientIP\" is not honoured: the mesh balances each request or connection".into(),
            "keep sessions in the application, or remove the Service's label aether.io/mesh-service",
        );
    }
    let preferred = match spec.traffic_distribution.as_deref() {
        None | Some("PreferClose" | "PreferSameZone") => TrafficScope::Cluster,
        Some("PreferSameNode") => TrafficScope::PreferNode,
        Some(other) => {
            report.warning(
                Reason::NotSupported,
                "spec.trafficDistribution",
                format!("{} is not known, so zones decide as they do without it", quoted(other)),
                "use PreferClose, PreferSameZone or PreferSameNode",
            );
            TrafficScope::Cluster
        }
    };
    match spec.internal_traffic_policy.as_deref() {
        Some("Local") => TrafficScope::Node,
        _ => preferred,
    }
}
