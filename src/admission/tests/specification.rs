//! The rules once more, slowly: what a pod is like after admission, written from the contract with
//! loops over whole pods, and sharing nothing with the code that is tested.

use serde_json::{Map, Value, json};

/// What becomes of a pod: `None` where it is denied.
pub(super) fn expected(
    pod: &Value,
    namespace: &str,
    by_namespace: bool,
    gate: Option<&str>,
) -> Option<Value> {
    let never = [
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "aether-system",
        "spire-system",
        "spire-server",
        "spire-mgmt",
    ];
    let labels = map(&pod["metadata"]["labels"]);
    let annotations = map(&pod["metadata"]["annotations"]);
    let label = labels.get("aether.io/managed");
    if never.iter().any(|name| name.eq_ignore_ascii_case(namespace)) {
        return Some(pod.clone());
    }
    if annotations.contains_key("kubernetes.io/config.mirror") {
        return Some(pod.clone());
    }
    let is_in = label.map_or(by_namespace, |label| label == "true");
    if !is_in {
        return Some(pod.clone());
    }
    if !carrier_works(pod, &annotations) {
        return None;
    }
    let mut after = pod.clone();
    if label.is_none() {
        let mut labels = labels.clone();
        labels.insert("aether.io/managed".to_owned(), json!("true"));
        set(&mut after, &["metadata", "labels"], Value::Object(labels));
    }
    resolver(&mut after);
    if let Some(image) = gate {
        put_gate(&mut after, &annotations, image);
    }
    Some(after)
}

fn carrier_works(pod: &Value, annotations: &Map<String, Value>) -> bool {
    let volumes = list(&pod["spec"]["volumes"]);
    let is_carrier = |volume: &Value| volume["csi"]["driver"] == "csi.aether.io";
    let carriers = volumes.iter().filter(|volume| is_carrier(volume)).count();
    if carriers > 1 || (carriers == 1 && pod["spec"]["securityContext"]["fsGroup"].is_null()) {
        return false;
    }
    let Some(Value::String(socket)) = annotations.get("endpoint.aether.io/uds-socket") else {
        return true;
    };
    let Some(slash) = socket.find('/') else { return false };
    let (name, file) = (&socket[..slash], &socket[slash + 1..]);
    let bad =
        file.is_empty() || file == "." || file == ".." || file.contains('/') || file.contains('\0');
    let path = format!("/run/aether/uds/12345678-1234-1234-1234-123456789012/{file}");
    let Some(volume) = volumes.iter().find(|volume| volume["name"] == name) else { return false };
    !bad && path.len() <= 107 && is_carrier(volume)
}

fn resolver(pod: &mut Value) {
    let policy = pod["spec"]["dnsPolicy"].clone();
    if pod["spec"]["hostNetwork"] == true || policy == "None" {
        return;
    }
    let mut wanted = vec![("timeout", "1"), ("attempts", "3")];
    if policy != "Default" {
        wanted.insert(0, ("ndots", "2"));
    }
    let mut options = list(&pod["spec"]["dnsConfig"]["options"]);
    let own = options.clone();
    for (name, value) in wanted {
        let has = own.iter().any(|option| {
            let text = option["name"].as_str().unwrap_or("");
            text == name || text.starts_with(&format!("{name}:"))
        });
        if !has {
            options.push(json!({ "name": name, "value": value }));
        }
    }
    if options.len() > own.len() {
        set(pod, &["spec", "dnsConfig", "options"], Value::Array(options));
    }
}

fn put_gate(pod: &mut Value, annotations: &Map<String, Value>, image: &str) {
    let spec = pod["spec"].clone();
    let windows =
        spec["os"]["name"] == "windows" || spec["nodeSelector"]["kubernetes.io/os"] == "windows";
    let opted_out = annotations.get("aether.io/identity-gate") == Some(&json!("false"));
    if opted_out || windows || spec["hostNetwork"] == true {
        return;
    }
    let mut inits = list(&spec["initContainers"]);
    let mut volumes = list(&spec["volumes"]);
    let named = |item: &Value, name: &str| item["name"] == name;
    let all = inits.iter().chain(spec["containers"].as_array().into_iter().flatten());
    for container in all.filter(|c| named(c, "aether-identity-ready")) {
        let ours = inits.contains(container)
            && container["command"][0] == "/identity-ready"
            && list(&container["volumeMounts"])
                .iter()
                .any(|m| named(m, "aether-identity-gate-spiffe"));
        if !ours {
            return;
        }
    }
    let volume = json!({ "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } });
    let known = volumes.iter().find(|v| named(v, "aether-identity-gate-spiffe")).cloned();
    match known {
        Some(known) if known == volume => {}
        Some(_) => return,
        None => {
            volumes.push(volume);
            set(pod, &["spec", "volumes"], Value::Array(volumes));
        }
    }
    let place = inits.iter().position(|c| named(c, "aether-identity-ready"));
    let gate = match place {
        Some(place) => inits.remove(place),
        None => new_gate(&spec, image),
    };
    inits.insert(0, gate);
    set(pod, &["spec", "initContainers"], Value::Array(inits));
}

fn new_gate(spec: &Value, image: &str) -> Value {
    let mut gate = json!({
        "name": "aether-identity-ready",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/identity-ready", "--spire-workload-socket=/run/secrets/workload-spiffe-uds/socket"],
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true, "runAsGroup": 65532, "runAsNonRoot": true,
            "runAsUser": 65532, "seccompProfile": { "type": "RuntimeDefault" },
        },
        "volumeMounts": [{
            "name": "aether-identity-gate-spiffe", "readOnly": true,
            "mountPath": "/run/secrets/workload-spiffe-uds",
        }],
    });
    for kind in ["requests", "limits"] {
        for resource in ["cpu", "memory"] {
            let amount = spec["containers"][0]["resources"][kind][resource].clone();
            if !amount.is_null() {
                gate["resources"][kind][resource] = amount;
            }
        }
    }
    gate
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Sets a value; what is missing on the way becomes a map.
fn set(at: &mut Value, path: &[&str], value: Value) {
    match path {
        [] => *at = value,
        [key, rest @ ..] => {
            if !at.is_object() {
                *at = json!({});
            }
            set(&mut at[*key], rest, value);
        }
    }
}
