//! Warnings about Services that are served but may not work as their authors think.

use super::facts::ServiceFacts;
use super::{Report, Settings};
use crate::model::{Finding, MeshService, Reason};

/// The capture listener's port.
const CAPTURE_PORT: u16 = 18001;

/// What `check` warns of.
pub(super) fn service(
    service: &MeshService,
    facts: &ServiceFacts,
    settings: &Settings,
) -> Vec<Finding> {
    let mut report = Report::new(facts.object.clone(), facts.origin.clone());
    if service.headless {
        report.warning(
            Reason::NotCaptured,
            "spec.clusterIP",
            format!(
                "a headless Service has no address, so it has no mesh name, and only HTTP to {} is routed; its pods' own names and other traffic pass through",
                settings.names.authority(service)
            ),
            "nothing is to be done where that is meant; else give it a ClusterIP",
        );
    } else if service.cluster_ips.is_empty() {
        report.warning(
            Reason::NotCaptured,
            "spec.clusterIP",
            "it has no ClusterIP yet, so it has no mesh name, and its TCP ports are not captured"
                .into(),
            "let Kubernetes allocate one, or write one into the manifest",
        );
    }
    ports(facts, settings, &mut report);
    report.into_findings()
}

fn ports(facts: &ServiceFacts, settings: &Settings, report: &mut Report) {
    for port in &facts.ports {
        let http = port.protocol.is_http();
        if http && (port.number == 443 || &*port.name == "https") {
            report.warning(
                Reason::Suspicious,
                "spec.ports",
                format!(
                    "the port {} (name {:?}) looks like TLS but is taken for HTTP",
                    port.number, port.name
                ),
                "declare appProtocol tcp or https if its clients speak TLS",
            );
        }
        if http && settings.server_first_ports.contains(&port.number) {
            report.warning(
                Reason::Suspicious,
                "spec.ports",
                format!("the port {} is HTTP, but it is one of the server-first ports, where HTTP is not recognised", port.number),
                "take it out of --server-first-ports, use another port, or declare appProtocol tcp",
            );
        }
        if port.number == CAPTURE_PORT {
            report.warning(
                Reason::Suspicious,
                "spec.ports",
                format!("the port {CAPTURE_PORT} is that of the capture listener, so connections to it are never captured"),
                "use another port",
            );
        }
    }
}
