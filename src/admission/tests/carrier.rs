//! The check of pods that serve on a Unix socket, from both sides of each limit.

use serde_json::{Value, json};

use super::*;
use crate::admission::decide::{Denial, FaultKind};

use FaultKind::{
    EmptyAnnotation, LongFile, ManyVolumes, NoFsGroup, UnknownVolume, WrongFile, WrongVolume,
};

/// A pod with these volumes, this group and this annotation.
fn carrier(volumes: Value, fs_group: Value, socket: Option<&str>) -> Value {
    let mut pod = pod_with(json!({ "spec": { "volumes": volumes } }));
    // A merge would drop a null.
    pod["spec"]["securityContext"]["fsGroup"] = fs_group;
    if let Some(socket) = socket {
        pod["metadata"]["annotations"] = json!({ "endpoint.aether.io/uds-socket": socket });
    }
    pod
}

fn one() -> Value {
    json!([{ "name": "sockets", "csi": { "driver": "csi.aether.io" } }, { "name": "tmp", "emptyDir": {} }])
}

fn denial(pod: &Value) -> Option<Denial> {
    match decided(pod, &settings()) {
        Decision::Denied(denial) => Some(denial),
        Decision::Managed(_) => None,
        Decision::Untouched(why) => panic!("{why:?}"),
    }
}

fn faults(pod: &Value) -> Vec<FaultKind> {
    denial(pod)
        .map(|denial| denial.faults.iter().map(|fault| fault.kind).collect())
        .unwrap_or_default()
}

#[test]
fn one_volume_and_not_two() {
    let two = json!([
        { "name": "a", "csi": { "driver": "csi.aether.io" } },
        { "name": "b", "csi": { "driver": "csi.aether.io" } },
    ]);
    assert_eq!(faults(&carrier(json!([]), Value::Null, None)), []);
    assert_eq!(faults(&carrier(one(), json!(1000), None)), []);
    assert_eq!(faults(&carrier(two.clone(), json!(1000), None)), [ManyVolumes]);
    assert_eq!(faults(&carrier(two, Value::Null, None)), [ManyVolumes, NoFsGroup]);
    // The drivers of others do not count, nor does a volume named like the driver.
    let others = json!([
        { "name": "a", "csi": { "driver": "csi.aether.io" } },
        { "name": "b", "csi": { "driver": "csi.spiffe.io" } },
        { "name": "csi-aether-io", "emptyDir": {} },
        { "name": "c", "csi": { "driver": "CSI.aether.io" } },
    ]);
    assert_eq!(faults(&carrier(others, json!(1), None)), []);
}

#[test]
fn the_group_is_set_and_zero_is_one() {
    for (group, expected) in [
        (json!(0), vec![]),
        (json!(1), vec![]),
        (json!(2_147_483_647), vec![]),
        (Value::Null, vec![NoFsGroup]),
    ] {
        assert_eq!(faults(&carrier(one(), group.clone(), None)), expected, "{group}");
    }
    for context in [json!({}), Value::Null] {
        let mut pod = carrier(one(), json!(0), None);
        pod["spec"]["securityContext"] = context.clone();
        assert_eq!(faults(&pod), [NoFsGroup], "{context}");
        pod["spec"].as_object_mut().unwrap().remove("securityContext");
        assert_eq!(faults(&pod), [NoFsGroup]);
    }
    // A container's own group is another thing.
    let mut pod = carrier(one(), Value::Null, None);
    pod["spec"]["containers"][0]["securityContext"] = json!({ "runAsGroup": 1000 });
    assert_eq!(faults(&pod), [NoFsGroup]);
    // Without a volume nobody needs one.
    assert_eq!(faults(&carrier(json!([{ "name": "tmp", "emptyDir": {} }]), Value::Null, None)), []);
}

#[test]
fn the_annotation_names_a_file_in_a_volume_of_ours() {
    let longest = format!("sockets/{}", "a".repeat(54));
    let too_long = format!("sockets/{}", "a".repeat(55));
    // 54 bytes, and not 54 characters.
    let wide = format!("sockets/{}", "ä".repeat(27));
    let too_wide = format!("sockets/{}", "ä".repeat(28));
    let table: [(&str, Vec<FaultKind>); 27] = [
        ("sockets/app.sock", vec![]),
        ("sockets/a", vec![]),
        ("sockets/...", vec![]),
        ("sockets/.hidden", vec![]),
        ("sockets/with space", vec![]),
        (&longest, vec![]),
        (&too_long, vec![LongFile]),
        (&wide, vec![]),
        (&too_wide, vec![LongFile]),
        ("", vec![EmptyAnnotation]),
        ("sockets", vec![WrongFile]),
        ("sockets/", vec![WrongFile]),
        ("sockets/.", vec![WrongFile]),
        ("sockets/..", vec![WrongFile]),
        ("sockets/a/b", vec![WrongFile]),
        ("sockets//a", vec![WrongFile]),
        ("sockets/a/", vec![WrongFile]),
        ("sockets/../x", vec![WrongFile]),
        ("sockets/a\0b", vec![WrongFile]),
        ("sockets/\0", vec![WrongFile]),
        ("/", vec![UnknownVolume, WrongFile]),
        ("/app.sock", vec![UnknownVolume]),
        ("../x", vec![UnknownVolume]),
        ("a/b/c", vec![UnknownVolume, WrongFile]),
        ("Sockets/app.sock", vec![UnknownVolume]),
        ("tmp/app.sock", vec![WrongVolume]),
        ("tmp/", vec![WrongVolume, WrongFile]),
    ];
    for (socket, expected) in table {
        assert_eq!(faults(&carrier(one(), json!(0), Some(socket))), expected, "{socket:?}");
    }
    assert_eq!(faults(&carrier(Value::Null, Value::Null, Some("sockets/x"))), [UnknownVolume]);
}

/// `/run/aether/uds/<uid>/<file>` with 54 bytes of file is as long as a socket's path may be.
#[test]
fn the_limit_is_that_of_the_path() {
    let path = |file: usize| format!("/run/aether/uds/{}/{}", "u".repeat(36), "f".repeat(file));
    assert_eq!(path(54).len(), 107);
    let folder = tempfile::tempdir().unwrap();
    let start = folder.path().to_str().unwrap().len() + 1;
    let bind = |length: usize| {
        let path = folder.path().join("x".repeat(length - start));
        std::os::unix::net::UnixListener::bind(path).is_ok()
    };
    assert!(bind(107) && !bind(108));
}

#[test]
fn an_emptydir_is_named_as_the_old_carrier() {
    for volume in [json!({ "name": "sockets", "emptyDir": {} }), json!({ "name": "sockets" })] {
        let message =
            denial(&carrier(json!([volume]), Value::Null, Some("sockets/a"))).unwrap().to_string();
        assert!(message.contains("emptyDir") && message.contains("earlier versions"), "{message}");
    }
    let other = json!([{ "name": "sockets", "csi": { "driver": "csi.spiffe.io" } }]);
    let message = denial(&carrier(other, Value::Null, Some("sockets/a"))).unwrap().to_string();
    assert!(message.contains("csi.spiffe.io") && !message.contains("emptyDir"), "{message}");
    let config = json!([{ "name": "sockets", "configMap": { "name": "x" } }]);
    let message = denial(&carrier(config, Value::Null, Some("sockets/a"))).unwrap().to_string();
    assert!(message.contains("\"configMap\""), "{message}");
}

#[test]
fn all_faults_stand_in_one_message_with_pod_field_value_and_fix() {
    let two = json!([
        { "name": "a", "csi": { "driver": "csi.aether.io" } },
        { "name": "b", "csi": { "driver": "csi.aether.io" } },
        { "name": "old", "emptyDir": {} },
    ]);
    let mut pod = carrier(two, Value::Null, Some("old/x/y"));
    let denied = denial(&pod).unwrap();
    let kinds: Vec<_> = denied.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [ManyVolumes, NoFsGroup, WrongVolume, WrongFile]);
    let message = denied.to_string();
    for part in [
        "Pod shop/web",
        "spec.volumes: 2 of them",
        "\"a\", \"b\"",
        "keep one of them",
        "spec.securityContext.fsGroup: it is not set",
        "fsGroup: 1000",
        "metadata.annotations[endpoint.aether.io/uds-socket]: \"old/x/y\"",
        "make it a volume with csi: {driver: csi.aether.io}",
        "\"x/y\"",
        "write <volume>/<file>",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(!message.contains('\n'));
    // A controller's pod has no name yet.
    pod["metadata"]["name"] = Value::Null;
    pod["metadata"]["generateName"] = json!("web-7d9f-");
    assert!(denial(&pod).unwrap().to_string().starts_with("Pod shop/web-7d9f-* cannot"));
}

/// Whoever writes an annotation of 200 kB, or one that would break lines, gets a short answer.
#[test]
fn a_long_or_strange_value_is_quoted_and_cut() {
    let long = format!("sockets/{}", "x".repeat(200_000));
    let message = denial(&carrier(one(), json!(0), Some(&long))).unwrap().to_string();
    assert!(message.len() < 1000 && message.contains("200000 bytes"), "{}", message.len());
    let strange =
        denial(&carrier(one(), json!(0), Some("sockets/a\nb\u{1b}[31m\0"))).unwrap().to_string();
    assert!(!strange.contains(['\n', '\u{1b}', '\0']), "{strange}");
}
