//! Pods of all shapes: maps and lists that are absent, null or empty, names with `/` and `~`,
//! fields that no pod of today has, and all that the rules look at.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A field that may be absent.
type Field = Option<Value>;

fn maybe(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Field> {
    prop_oneof![2 => Just(None), 1 => Just(Some(Value::Null)), 6 => value.prop_map(Some)].boxed()
}

fn one_of(values: &[Value]) -> BoxedStrategy<Value> {
    proptest::sample::select(values.to_vec()).boxed()
}

/// An object of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Field>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let future = maybe(one_of(&[json!({ "a/b": { "~": [null, 1.5] } }), json!([]), json!("x")]));
    (values, future)
        .prop_map(move |(values, future)| {
            let named =
                names.iter().copied().zip(values).chain([("field/from~the.future", future)]);
            let present = named.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(present.collect())
        })
        .boxed()
}

fn list(item: BoxedStrategy<Value>, most: usize) -> BoxedStrategy<Value> {
    proptest::collection::vec(item, 0..=most).prop_map(Value::Array).boxed()
}

/// A map of texts with these keys and values, each at will.
fn texts(entries: &'static [(&'static str, &'static [&'static str])]) -> BoxedStrategy<Value> {
    let each: Vec<_> = entries
        .iter()
        .map(|(key, values)| {
            let value = proptest::option::weighted(0.4, proptest::sample::select(values.to_vec()));
            value.prop_map(move |value| Some(((*key).to_owned(), json!(value?))))
        })
        .collect();
    each.prop_map(|entries| Value::Object(entries.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

const LABELS: &[(&str, &[&str])] = &[
    ("aether.io/managed", &["true", "true", "true", "true", "false", "", "True"]),
    ("app.kubernetes.io/na~me", &["web", ""]),
    ("aether.io~1managed", &["true"]),
];

const ANNOTATIONS: &[(&str, &[&str])] = &[
    ("aether.io/identity-gate", &["false", "true", "False"]),
    (
        "endpoint.aether.io/uds-socket",
        &["s/app", "s/app", "t/app", "s/", "s", "", "a/b/c", "x/app"],
    ),
    ("note~/x", &["1"]),
];

fn volume() -> BoxedStrategy<Value> {
    one_of(&[
        json!({ "name": "s", "csi": { "driver": "csi.aether.io" } }),
        json!({ "name": "t", "emptyDir": {} }),
        json!({ "name": "u/~", "configMap": { "name": "x" }, "newField": null }),
        json!({ "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } }),
        json!({ "name": "aether-identity-gate-spiffe", "emptyDir": {} }),
        json!({ "name": "v" }),
    ])
}

fn gate() -> Value {
    json!({
        "name": "aether-identity-ready",
        "image": "old",
        "command": ["/identity-ready", "--spire-workload-socket=/s/socket"],
        "volumeMounts": [{ "name": "token", "mountPath": "/t" }, { "name": "aether-identity-gate-spiffe", "mountPath": "/s" }],
        "resources": { "limits": { "cpu": "1" } },
    })
}

fn init_container() -> BoxedStrategy<Value> {
    one_of(&[
        json!({ "name": "istio-proxy", "restartPolicy": "Always" }),
        json!({ "name": "migrate", "env": [{ "name": "A/B~C" }], "restartPolicyRules": [{}] }),
        json!({ "name": "vault-agent-init" }),
        gate(),
        json!({ "name": "aether-identity-ready", "image": "busybox" }),
    ])
}

fn container() -> BoxedStrategy<Value> {
    let amount = || one_of(&[json!("100m"), json!("1"), json!(2), json!("64Mi")]);
    let amounts = || {
        object(vec![
            ("cpu", maybe(amount())),
            ("memory", maybe(amount())),
            ("gpu", maybe(amount())),
        ])
    };
    let resources = object(vec![("requests", maybe(amounts())), ("limits", maybe(amounts()))]);
    let name = one_of(&[json!("web"), json!("web"), json!("log"), json!("aether-identity-ready")]);
    object(vec![("name", name.prop_map(Some).boxed()), ("resources", maybe(resources))])
}

fn option() -> BoxedStrategy<Value> {
    one_of(&[
        json!({ "name": "ndots", "value": "5" }),
        json!({ "name": "ndots:5" }),
        json!({ "name": "timeout" }),
        json!({ "name": "attempts", "value": null }),
        json!({ "name": "edns0" }),
        json!({ "name": "timeouts", "value": "2" }),
        json!({}),
    ])
}

/// Two of one name make no pod, and what happens then is nobody's rule.
fn named_once(pod: &Value) -> bool {
    ["containers", "initContainers", "volumes"].iter().all(|key| {
        let names: Vec<_> =
            pod["spec"][key].as_array().into_iter().flatten().map(|item| &item["name"]).collect();
        names.iter().enumerate().all(|(index, name)| !names[..index].contains(name))
    })
}

/// A pod.
pub(super) fn pod() -> impl Strategy<Value = Value> {
    let metadata = object(vec![
        ("name", maybe(one_of(&[json!("web")]))),
        ("generateName", maybe(one_of(&[json!("web-")]))),
        ("labels", maybe(texts(LABELS))),
        ("annotations", maybe(texts(ANNOTATIONS))),
    ]);
    let dns = object(vec![
        ("options", maybe(list(option(), 4))),
        ("searches", maybe(one_of(&[json!(["x"])]))),
    ]);
    let fs_group = object(vec![("fsGroup", maybe(one_of(&[json!(0), json!(1000)])))]);
    let selector = texts(&[("kubernetes.io/os", &["windows", "linux", "linux"]), ("x/~", &["y"])]);
    let policy = one_of(
        &["ClusterFirst", "ClusterFirst", "Default", "None", "ClusterFirstWithHostNet"]
            .map(Value::from),
    );
    let os = one_of(&[
        json!({}),
        json!({ "name": "linux" }),
        json!({ "name": "linux" }),
        json!({ "name": "windows" }),
    ]);
    let host = one_of(&[json!(false), json!(false), json!(false), json!(true)]);
    let spec = object(vec![
        ("containers", list(container(), 3).prop_map(Some).boxed()),
        ("initContainers", maybe(list(init_container(), 3))),
        ("volumes", maybe(list(volume(), 3))),
        ("dnsPolicy", maybe(policy)),
        ("dnsConfig", maybe(dns)),
        ("securityContext", maybe(fs_group)),
        ("nodeSelector", maybe(selector)),
        ("hostNetwork", maybe(host)),
        ("os", maybe(os)),
    ]);
    object(vec![
        ("metadata", metadata.prop_map(Some).boxed()),
        ("spec", spec.prop_map(Some).boxed()),
    ])
    .prop_filter("two of one name", named_once)
}
