//! Reading an EndpointSlice.

use std::sync::Arc;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::values;
use crate::index::Report;
use crate::index::facts::{SliceEndpoint, SliceFacts};
use crate::index::keys;
use crate::model::{Health, Reason, quoted};

/// The Service that a slice belongs to, by its label.
pub fn service_of(slice: &EndpointSlice) -> Option<&str> {
    values::of(slice.metadata.labels.as_ref(), keys::SERVICE_NAME).filter(|name| !name.is_empty())
}

/// The facts of a slice. What cannot be used of it is left out and reported: an FQDN slice
/// altogether, a port without a number, an address that is none.
pub fn slice(slice: &EndpointSlice, report: &mut Report) -> SliceFacts {
    if slice.address_type == "FQDN" {
        report.problem(
            Reason::NotSupported,
            "addressType",
            "FQDN slices hold names where addresses are needed, so its endpoints are left out"
                .into(),
            "make slices of the type IPv4 or IPv6",
        );
        return SliceFacts::default();
    }
    let ports = slice.ports.iter().flatten().enumerate().filter_map(|(at, port)| {
        let tcp = port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
        let name = port.name.as_deref().unwrap_or_default();
        let number = port.port.and_then(|number| u16::try_from(number).ok()).filter(|n| *n > 0);
        if tcp && number.is_none() {
            let value = port.port.map_or("no number".to_owned(), |number| number.to_string());
            report.problem(
                Reason::InvalidValue,
                &format!("ports[{at}].port"),
                format!("the port {} has {value}, so it is left out", quoted(name)),
                "give it a number from 1 to 65535",
            );
        }
        number.filter(|_| tcp).map(|number| (Arc::from(name), number))
    });
    let ports = ports.collect();
    let endpoints = slice.endpoints.iter().enumerate();
    let endpoints = endpoints.filter_map(|(at, endpoint)| one(at, endpoint, report)).collect();
    SliceFacts { ports, endpoints }
}

fn one(at: usize, endpoint: &Endpoint, report: &mut Report) -> Option<SliceEndpoint> {
    let text = endpoint.addresses.first()?;
    let Some(address) = text.parse().ok().filter(|address| values::usable(*address)) else {
        report.problem(
            Reason::InvalidValue,
            &format!("endpoints[{at}].addresses[0]"),
            format!(
                "{} is no address that a pod can have, so the endpoint is left out",
                quoted(text)
            ),
            "give a unicast IPv4 or IPv6 address",
        );
        return None;
    };
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let ready = conditions.ready.unwrap_or(true);
    let serving = conditions.serving.unwrap_or(ready);
    let health = match (ready, serving && conditions.terminating.unwrap_or(false)) {
        (true, _) => Health::Ready,
        (false, true) => Health::Draining,
        (false, false) => Health::Unready,
    };
    let pod = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
    Some(SliceEndpoint {
        address,
        health,
        node: endpoint.node_name.as_deref().map(Arc::from),
        zone: endpoint.zone.as_deref().filter(|zone| !zone.is_empty()).map(Arc::from),
        pod: pod.and_then(|target| target.name.as_deref()).map(Arc::from),
    })
}
