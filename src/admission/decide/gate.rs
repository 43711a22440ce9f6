//! The identity gate: an init container, before all others, that waits for the pod's identity.

use serde_json::{Map, Value, json};

use crate::admission::keys;
use crate::admission::pod::{Pod, name_of};
use crate::admission::settings::{Gate, ResourceSpec};

/// What is done about the identity gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateStep {
    /// None is configured.
    Off,
    /// This pod gets none.
    Skipped(Skip),
    /// The pod has one, or gets it.
    Present {
        /// What becomes of the container.
        container: Place,
        /// The volume that is added, unless it is there.
        volume: Option<Value>,
    },
}

/// What becomes of the gate's container.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// It is added, as the first one.
    Add(Value),
    /// It stands behind another's, at this index, and is put back before all.
    MoveFrom(usize),
    /// It is the first one.
    Keep,
}

/// Why a pod gets no gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// Its annotation says so.
    Annotation,
    /// It uses its node's network.
    HostNetwork,
    /// It runs on Windows, where there is neither this image nor this socket.
    Windows,
    /// It has a container of the gate's name that is not the gate.
    ForeignContainer,
    /// It has a volume of the gate's name that is not the gate's.
    ForeignVolume,
}

impl Skip {
    /// The word for it in metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::HostNetwork => "host_network",
            Self::Windows => "windows",
            Self::ForeignContainer => "foreign_container",
            Self::ForeignVolume => "foreign_volume",
        }
    }
}

impl GateStep {
    /// Whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Off | Self::Skipped(_) => true,
            Self::Present { container, volume } => *container == Place::Keep && volume.is_none(),
        }
    }
}

/// Decides on the gate. `None`: none is configured.
pub fn decide(pod: &Pod<'_>, gate: Option<&Gate>) -> GateStep {
    let Some(gate) = gate else { return GateStep::Off };
    if let Some(skip) = skip(pod) {
        return GateStep::Skipped(skip);
    }
    let place = pod.init_containers.iter().position(|c| name_of(c) == keys::GATE_CONTAINER);
    let container = match place {
        None => Place::Add(container(gate, pod)),
        Some(0) => Place::Keep,
        Some(place) => Place::MoveFrom(place),
    };
    let has_volume = pod.volumes.iter().any(|volume| name_of(volume) == keys::GATE_VOLUME);
    GateStep::Present { container, volume: (!has_volume).then(volume) }
}

fn skip(pod: &Pod<'_>) -> Option<Skip> {
    if pod.annotation(keys::IDENTITY_GATE) == Some("false") {
        return Some(Skip::Annotation);
    }
    if pod.host_network {
        return Some(Skip::HostNetwork);
    }
    let selects = |key| pod.node_selector.and_then(|selector| selector.get(key));
    let selects_windows = |key| selects(key).and_then(Value::as_str) == Some("windows");
    if pod.os == "windows" || selects_windows(keys::OS) || selects_windows(keys::OLD_OS) {
        return Some(Skip::Windows);
    }
    let called = |list: &'_ [Value], name| list.iter().filter(|c| name_of(c) == name).count();
    let gates = called(pod.init_containers, keys::GATE_CONTAINER);
    let named = pod.init_containers.iter().filter(|c| name_of(c) == keys::GATE_CONTAINER);
    let foreign = named.filter(|container| !is_ours(container)).count();
    if foreign > 0 || gates > 1 || called(pod.containers, keys::GATE_CONTAINER) > 0 {
        return Some(Skip::ForeignContainer);
    }
    let mut named = pod.volumes.iter().filter(|volume| name_of(volume) == keys::GATE_VOLUME);
    named.any(|volume| !is_our_volume(volume)).then_some(Skip::ForeignVolume)
}

/// Whether a container of our name is ours, by its command and its mount. It may have been made by
/// another configuration than today's, as in a pod that is made again from what `kubectl get`
/// showed: then its socket lies elsewhere, and it still waits at the one that is mounted. Whatever
/// else it holds (a token's mount, defaults, limits) was added to it since.
fn is_ours(container: &Value) -> bool {
    let mut words = list(container, "command").iter().filter_map(Value::as_str);
    if words.next() != Some(keys::GATE_COMMAND) {
        return false;
    }
    let socket = words.find_map(|word| word.strip_prefix(keys::GATE_SOCKET));
    let folder = socket.and_then(|socket| socket.rsplit_once('/')).map(|(folder, _)| folder);
    folder.is_some_and(|folder| {
        list(container, "volumeMounts").iter().any(|mount| {
            let path = mount.get("mountPath").and_then(Value::as_str).unwrap_or_default();
            name_of(mount) == keys::GATE_VOLUME && path.trim_end_matches('/') == folder
        })
    })
}

fn is_our_volume(volume: &Value) -> bool {
    let csi = volume.get("csi");
    let driver = csi.and_then(|csi| csi.get("driver")).and_then(Value::as_str);
    let read_only = csi.and_then(|csi| csi.get("readOnly")).and_then(Value::as_bool);
    driver == Some(keys::SPIFFE_DRIVER) && read_only == Some(true)
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The gate's volume.
fn volume() -> Value {
    json!({ "name": keys::GATE_VOLUME, "csi": { "driver": keys::SPIFFE_DRIVER, "readOnly": true } })
}

/// The gate's container, fit for the Restricted level of Pod Security.
fn container(gate: &Gate, pod: &Pod<'_>) -> Value {
    let spec = gate.spec();
    let mut command =
        vec![keys::GATE_COMMAND.to_owned(), format!("{}{}", keys::GATE_SOCKET, spec.socket)];
    command.extend(spec.timeout.as_ref().map(|t| format!("{}{t}", keys::GATE_TIMEOUT)));
    let mut container = json!({
        "name": keys::GATE_CONTAINER,
        "image": spec.image,
        "imagePullPolicy": spec.pull_policy,
        "command": command,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
            "runAsGroup": spec.user,
            "runAsNonRoot": true,
            "runAsUser": spec.user,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "volumeMounts": [
            { "name": keys::GATE_VOLUME, "mountPath": gate.folder(), "readOnly": true },
        ],
    });
    let resources = resources(gate, pod);
    if let (Value::Object(container), false) = (&mut container, resources.is_empty()) {
        container.insert("resources".to_owned(), Value::Object(resources));
    }
    container
}

/// What the gate asks for: what the pod's first app container does. An init container runs before
/// the others, so it takes nothing that the pod has not reserved anyway; and a pod keeps its QoS
/// class, its quota and its place within a LimitRange, none of which can be known here.
fn resources(gate: &Gate, pod: &Pod<'_>) -> Map<String, Value> {
    let own = pod.containers.first().and_then(|container| container.get("resources"));
    let mut resources = Map::new();
    for kind in ["requests", "limits"] {
        let mut amounts = Map::new();
        for (name, spec) in [("cpu", &gate.spec().cpu), ("memory", &gate.spec().memory)] {
            let amount = if spec.is_set() {
                let ResourceSpec { request, limit } = spec;
                let given = if kind == "requests" { request } else { limit };
                given.clone().map(Value::String)
            } else {
                let of = own.and_then(|own| own.get(kind)).and_then(|own| own.get(name));
                of.filter(|amount| !amount.is_null()).cloned()
            };
            amounts.extend(amount.map(|amount| (name.to_owned(), amount)));
        }
        if !amounts.is_empty() {
            resources.insert(kind.to_owned(), Value::Object(amounts));
        }
    }
    resources
}
