//! The options of the pod's resolver: a mesh name is asked as it is, and a query that is lost costs
//! a second and not five.

use serde_json::Value;

use crate::admission::pod::{Pod, name_of};
use crate::admission::settings::Settings;

/// What is done about the resolver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolver {
    /// The options that are added, in this order.
    pub add: Vec<DnsOption>,
    /// Why fewer than the three are there, if so.
    pub left: Option<Left>,
}

/// An option of resolv.conf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsOption {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// Why options are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Left {
    /// The webhook is set not to touch the resolver.
    Off,
    /// The pod uses its node's network, and with it mostly its node's resolver.
    HostNetwork,
    /// The pod brings a resolver configuration of its own.
    PolicyNone,
    /// The pod uses its node's resolver, whose names `ndots` could break. The other two are set.
    PolicyDefault,
}

impl Left {
    /// The word for it in metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::HostNetwork => "host_network",
            Self::PolicyNone => "dns_policy_none",
            Self::PolicyDefault => "dns_policy_default",
        }
    }
}

/// Decides on the options. One that the pod has, whatever its value, is the pod's own.
pub fn decide(pod: &Pod<'_>, settings: &Settings) -> Resolver {
    let left = match (settings.pod_ndots, pod.host_network, pod.dns_policy) {
        (false, ..) => Some(Left::Off),
        (_, true, _) => Some(Left::HostNetwork),
        (.., "None") => Some(Left::PolicyNone),
        (.., "Default") => Some(Left::PolicyDefault),
        _ => None,
    };
    let mut add = Vec::new();
    if left.is_none() {
        add.push(DnsOption { name: "ndots", value: settings.ndots().to_string() });
    }
    if matches!(left, None | Some(Left::PolicyDefault)) {
        add.push(DnsOption { name: "timeout", value: "1".to_owned() });
        add.push(DnsOption { name: "attempts", value: "3".to_owned() });
    }
    add.retain(|option| !pod.dns_options.iter().any(|own| is_called(own, option.name)));
    Resolver { add, left }
}

/// Whether this is the option of that name. `ndots:5` may stand as a name without a value: the
/// kubelet writes it into resolv.conf all the same.
fn is_called(option: &Value, name: &str) -> bool {
    let own = name_of(option);
    own.split_once(':').map_or(own, |(own, _)| own).trim() == name
}
