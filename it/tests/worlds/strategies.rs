//! The values that worlds are made of: what users write, what they should not, and the ends of every range.

use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::Value;

/// A field to be set, by its path.
pub type Setting = (Vec<&'static str>, Value);

/// A label as long as may be.
pub const LONG: &str = "n23456789-123456789-123456789-123456789-123456789-123456789-123";

/// One of these, alike.
pub fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &[T]) -> BoxedStrategy<T> {
    Union::new(values.iter().cloned().map(Just)).boxed()
}

/// This field with one of these values, in `share` of 10 cases; absent otherwise.
pub fn maybe(
    share: u32,
    path: &[&'static str],
    values: BoxedStrategy<Value>,
) -> BoxedStrategy<Option<Setting>> {
    let path = path.to_vec();
    let set = values.prop_map(move |value| Some((path.clone(), value)));
    prop_oneof![share => set, 10 - share => Just(None)].boxed()
}

/// This annotation with one of these values, in `share` of 10 cases.
pub fn annotation(
    share: u32,
    key: &'static str,
    values: BoxedStrategy<String>,
) -> BoxedStrategy<Option<Setting>> {
    maybe(share, &["metadata", "annotations", key], values.prop_map(Value::from).boxed())
}

/// Namespaces: one is never touched.
pub fn namespaces() -> BoxedStrategy<String> {
    let usual = one_of(&["shop", "pay", LONG]);
    prop_oneof![20 => usual, 1 => Just("kube-system")].prop_map(str::to_owned).boxed()
}

/// Names of Services. They are few, so that they meet.
pub fn names() -> BoxedStrategy<String> {
    let few = one_of(&["web", "cart", "a", "0", "db-1", LONG, "svc", "shop", "any"]);
    prop_oneof![4 => few.prop_map(str::to_owned), 3 => "[a-z]([a-z0-9-]{0,5}[a-z0-9])?"].boxed()
}

/// Texts that mean nothing: 253 characters, of every script, with what formats and paths could stumble over.
pub fn noise() -> BoxedStrategy<String> {
    let fixed = one_of(&[
        String::new(),
        " ".to_owned(),
        "x".repeat(253),
        "é服🚀".repeat(84) + "é",
        "%REQ(:PATH)%%".to_owned(),
        "a.b.c".to_owned(),
        "Web".to_owned(),
        "-a".to_owned(),
        "a/b/c,,".to_owned(),
        "\u{202e}\u{0}\r\n\"'\\{}[]*?#&".to_owned(),
    ]);
    prop_oneof![2 => fixed, 1 => any::<String>()].boxed()
}

/// Words for protocols.
pub fn protocols() -> BoxedStrategy<String> {
    let words = one_of(&[
        "http",
        "http2",
        "h2",
        "grpc",
        "GRPC",
        "kubernetes.io/h2c",
        "kubernetes.io/ws",
        "",
        "tcp",
        "TCP",
        "https",
        "grpc-web",
        "redis",
    ]);
    prop_oneof![8 => words.prop_map(str::to_owned), 1 => noise()].boxed()
}

/// Numbers of ports that an API server takes.
pub fn ports() -> BoxedStrategy<u16> {
    let known = one_of(&[1, 22, 53, 80, 443, 3306, 8080, 9090, 18001, 18053, 18081, 65535]);
    prop_oneof![2 => known, 1 => 1..=u16::MAX].boxed()
}

/// Numbers of ports, wrong ones included.
pub fn numbers() -> BoxedStrategy<i32> {
    let wrong = one_of(&[0, -1, 65536, i32::MAX]);
    prop_oneof![100 => ports().prop_map(i32::from), 1 => wrong].boxed()
}

/// Names of ports. They are few, so that slices fit Services.
pub fn port_names() -> BoxedStrategy<String> {
    one_of(&["", "http", "https", "grpc", "mesh"]).prop_map(str::to_owned).boxed()
}

/// Addresses of endpoints.
pub fn addresses(v6: bool) -> BoxedStrategy<String> {
    let good = if v6 { "fd00:10:244::[1-9a-f]{1,4}" } else { "10\\.244\\.[0-9]\\.[1-9]" };
    let wrong = one_of(&["127.0.0.1", "::1", "0.0.0.0", "169.254.0.1", "224.0.0.1", "name", ""]);
    prop_oneof![30 => good, 1 => wrong.prop_map(str::to_owned)].boxed()
}

/// Names of nodes; not all of them exist.
pub fn nodes() -> BoxedStrategy<String> {
    "node-[0-4]".boxed()
}
