//! Whether a connection is redirected to the proxy. The rules in the pod are those of the project's
//! contract, in its order; no part of ours sees them.

use std::net::IpAddr;

use super::evidence::Evidence;
use super::explanation::{Step, Topic};
use crate::index::{EXCLUDE_PORTS, EXCLUDE_RANGES, PodFacts, REDIRECT_ALL};
use crate::translate::CaptureMode;
use crate::translate::naming::{CAPTURE_PORT, MESH_PORT};

/// What the step says, and why the connection does not reach the proxy, where it does not.
pub(super) fn step(
    pod: &PodFacts,
    to: Option<IpAddr>,
    port: u16,
    evidence: &Evidence,
) -> (Step, Option<String>) {
    let left_alone = |why: String| Step::new(Topic::Redirection, format!("not redirected: {why}"));
    let annotation = |key: &str| format!("metadata.annotations[{key}]");
    if let Some(facts) = &pod.redirection {
        let ports = facts.ports.iter().find(|ports| ports.contains(&port));
        if let Some(ports) = ports {
            let why = format!("the pod excludes port {port}");
            let value = format!("{}-{}", ports.start(), ports.end());
            let value = if ports.start() == ports.end() { port.to_string() } else { value };
            let rule = "connections to these ports are left alone";
            let step = left_alone(why.clone());
            return (step.because(&pod.object, annotation(EXCLUDE_PORTS), value, rule), Some(why));
        }
        let range = to.and_then(|ip| facts.ranges.iter().find(|range| range.holds(ip)));
        if let (Some(range), Some(ip)) = (range, to) {
            let why = format!("the pod excludes {ip}");
            let (value, rule) = (range.to_string(), "connections to these ranges are left alone");
            let step = left_alone(why.clone());
            return (step.because(&pod.object, annotation(EXCLUDE_RANGES), value, rule), Some(why));
        }
    }
    if let Some((ip, kind)) = to.and_then(|ip| Some((ip, own_kind(ip)?))) {
        let why = format!("{ip} is {kind}");
        let rule = "loopback, link-local and multicast addresses are left alone";
        return (left_alone(why.clone()).because("the pod's redirection", "", "", rule), Some(why));
    }
    if port == CAPTURE_PORT {
        let why = format!("port {port} is that of the capture listener");
        let rule = "a connection to it would be a loop";
        return (left_alone(why.clone()).because("the pod's redirection", "", "", rule), Some(why));
    }
    let own = pod.redirection.as_ref().and_then(|facts| facts.redirect_all);
    let all = own.unwrap_or(evidence.settings.mode == CaptureMode::RedirectAll);
    let decided = |step: Step, rule: &str| match own {
        Some(value) => step.because(&pod.object, annotation(REDIRECT_ALL), value.to_string(), rule),
        None => step.because("option", "--capture-mode", evidence.settings.mode.to_string(), rule),
    };
    if all || port == MESH_PORT {
        let step = Step::new(Topic::Redirection, format!("redirected to 127.0.0.1:{CAPTURE_PORT}"));
        let rule = if all {
            "all TCP goes to the proxy but what is excluded"
        } else {
            "TCP to port 18081 goes to the proxy"
        };
        return (decided(step, rule), None);
    }
    let why = format!("only port {MESH_PORT} is captured, and not {port}");
    let step = decided(left_alone(why.clone()), "TCP to port 18081 alone goes to the proxy");
    (step.note(format!("ask for port {MESH_PORT} to have it captured")), Some(why))
}

/// The kinds of addresses that are never redirected.
fn own_kind(ip: IpAddr) -> Option<&'static str> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_loopback() {
        Some("a loopback address")
    } else if link_local {
        Some("a link-local address")
    } else if ip.is_multicast() {
        Some("a multicast address")
    } else {
        None
    }
}
