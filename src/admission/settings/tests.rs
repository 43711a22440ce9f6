#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

fn spec(change: impl FnOnce(&mut GateSpec)) -> GateSpec {
    let mut spec = GateSpec { image: "aether:1".to_owned(), ..GateSpec::default() };
    change(&mut spec);
    spec
}

/// The settings at fault.
fn wrong(change: impl FnOnce(&mut GateSpec)) -> Vec<&'static str> {
    let problems = Gate::new(spec(change)).err().map(|problems| problems.0).unwrap_or_default();
    problems.into_iter().map(|problem| problem.setting).collect()
}

#[test]
fn the_defaults_are_good_but_for_the_image() {
    assert_eq!(wrong(|_| {}), [""; 0]);
    assert_eq!(wrong(|spec| spec.image = String::new()), ["image"]);
    let gate = Gate::new(spec(|_| {})).unwrap();
    assert_eq!(gate.folder(), "/run/secrets/workload-spiffe-uds");
}

#[test]
fn images() {
    let digest = format!("a@sha256:{}", "0".repeat(64));
    let good = [
        "a",
        "a/b",
        "a:1",
        "a:v1.2_3-4",
        "registry.example/a/b:1",
        "localhost:5000/a",
        "localhost/a",
        "10.0.0.1:5000/a:1",
        "[::1]:5000/a",
        "REGISTRY.example/a",
        "a_b/c-d/e.f",
        &digest,
    ];
    for image in good {
        assert_eq!(wrong(|spec| spec.image = image.to_owned()), [""; 0], "{image}");
    }
    let long = format!("a:{}", "1".repeat(129));
    let bad = [
        "",
        " ",
        "a b",
        "a:",
        ":1",
        "a:1:2",
        "A",
        "a/B",
        "/a",
        "a/",
        "a//b",
        "-a",
        "a-",
        "a@",
        "a@sha256:0",
        "a:-1",
        "http://a/b",
        "a\n",
        &long,
        "registry.example:port/a",
    ];
    for image in bad {
        assert_eq!(wrong(|spec| spec.image = image.to_owned()), ["image"], "{image:?}");
    }
}

#[test]
fn sockets() {
    let longest = format!("/a/{}", "b".repeat(104));
    for socket in ["/run/spire/socket", "/a/b", "/run/secrets/kubernetes.io/x/socket", &longest] {
        assert_eq!(wrong(|spec| spec.socket = socket.to_owned()), [""; 0], "{socket}");
    }
    let too_long = format!("/a/{}", "b".repeat(105));
    let bad = [
        "",
        "socket",
        "./a/b",
        "/socket",
        "/",
        "//a/b",
        "/a//b",
        "/a/b/",
        "/a/../b",
        "/a/./b",
        "/..",
        "/a:b/c",
        "/a\n/b",
        "/dev/a",
        "/proc/self/fd",
        "/sys/x",
        "/identity-ready/socket",
        "/var/run/secrets/kubernetes.io/serviceaccount/socket",
        "/run/secrets/kubernetes.io/serviceaccount/socket",
        &too_long,
    ];
    for socket in bad {
        assert_eq!(wrong(|spec| spec.socket = socket.to_owned()), ["socket"], "{socket:?}");
    }
}

#[test]
fn timeouts() {
    for timeout in ["0", "0s", "1s", "90s", "1m30s", "500ms", "2h", "999999999s"] {
        assert_eq!(wrong(|spec| spec.timeout = Some(timeout.to_owned())), [""; 0], "{timeout}");
    }
    for timeout in ["", "1", "s", "-1s", "1d", "1.5s", " 1s", "1s ", "1s2", "9999999999s"] {
        assert_eq!(
            wrong(|spec| spec.timeout = Some(timeout.to_owned())),
            ["timeout"],
            "{timeout:?}"
        );
    }
}

#[test]
fn users_and_policies() {
    for user in [1, 65532, 2_147_483_647] {
        assert_eq!(wrong(|spec| spec.user = user), [""; 0], "{user}");
    }
    for user in [0, -1, 2_147_483_648] {
        assert_eq!(wrong(|spec| spec.user = user), ["user"], "{user}");
    }
    for policy in ["Always", "IfNotPresent", "Never"] {
        assert_eq!(wrong(|spec| spec.pull_policy = policy.to_owned()), [""; 0]);
    }
    for policy in ["", "always", "ifnotpresent", "Sometimes"] {
        assert_eq!(wrong(|spec| spec.pull_policy = policy.to_owned()), ["pull-policy"]);
    }
}

#[test]
fn quantities_are_valid_above_zero_and_in_order() {
    let some = |text: &str| Some(text.to_owned());
    for quantity in ["1", "10m", "0.5", ".5", "5.", "16Mi", "1Gi", "100n", "1e3", "1E3", "2k", "1E"]
    {
        assert_eq!(wrong(|spec| spec.cpu.request = some(quantity)), [""; 0], "{quantity}");
    }
    for quantity in
        ["", "0", "0m", "-1", "1 Gi", "1GiB", "m", "1.2.3", ".", "1e", "ten", "1mi", "1K"]
    {
        assert_eq!(
            wrong(|spec| spec.memory.limit = some(quantity)),
            ["memory-limit"],
            "{quantity:?}"
        );
    }
    let table = [
        ("1", "1000m", true),
        ("1", "999m", false),
        ("1Gi", "1024Mi", true),
        ("1Gi", "1G", false),
        ("1e3", "1k", true),
        ("0.1", "100m", true),
        ("100000001n", "100m", false),
    ];
    for (request, limit, good) in table {
        let wrong = wrong(|spec| {
            spec.cpu.request = some(request);
            spec.cpu.limit = some(limit);
        });
        assert_eq!(wrong.is_empty(), good, "{request} {limit}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once_with_the_way_out() {
    let problems = Gate::new(spec(|spec| {
        spec.image = "A".to_owned();
        spec.pull_policy = "never".to_owned();
        spec.socket = "socket".to_owned();
        spec.timeout = Some("-1s".to_owned());
        spec.user = 0;
        spec.cpu.request = Some("x".to_owned());
        spec.memory.request = Some("2Gi".to_owned());
        spec.memory.limit = Some("1Gi".to_owned());
    }));
    let message = problems.unwrap_err().to_string();
    for part in [
        "--identity-gate-image \"A\": its path",
        "--identity-gate-pull-policy \"never\": write Always, IfNotPresent or Never",
        "--identity-gate-socket \"socket\": write an absolute path",
        "--identity-gate-timeout \"-1s\": write a duration",
        "--identity-gate-user \"0\": write a number",
        "--identity-gate-cpu-request \"x\": write a quantity",
        "--identity-gate-memory-request \"2Gi\": it is above the limit 1Gi",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}
