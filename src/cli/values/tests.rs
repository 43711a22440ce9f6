#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

#[test]
fn a_socket_is_a_path_of_107_bytes_or_none() {
    assert_eq!("".parse(), Ok(Socket::Off));
    assert_eq!("none".parse(), Ok(Socket::Off));
    assert_eq!("/run/x.sock".parse(), Ok(Socket::At("/run/x.sock".into())));
    assert!("s".repeat(107).parse::<Socket>().is_ok());
    let error = "s".repeat(108).parse::<Socket>().unwrap_err();
    assert!(error.contains("108") && error.contains("107"), "{error}");
}

#[test]
fn an_address_is_an_ip_and_a_port_or_none() {
    assert_eq!("none".parse(), Ok(Address(None)));
    assert_eq!("[::1]:0".parse(), Ok(Address(Some("[::1]:0".parse().unwrap()))));
    for wrong in ["18000", ":18000", "localhost:18000", "127.0.0.1", "127.0.0.1:65536"] {
        assert!(wrong.parse::<Address>().unwrap_err().contains("127.0.0.1:18000"), "{wrong}");
    }
}

#[test]
fn ports_from_both_sides() {
    assert_eq!("".parse(), Ok(Ports::default()));
    assert_eq!("65535, 22,1,22".parse(), Ok(Ports([1, 22, 65535].into())));
    for wrong in ["0", "65536", "22,", ",", "ssh", "-1", "22 25"] {
        assert!(wrong.parse::<Ports>().unwrap_err().contains("1 to 65535"), "{wrong}");
    }
}

#[test]
fn resolvers_have_port_53_unless_they_say_so() {
    let expected = ["10.96.0.10:53", "[::1]:5353", "[fd00::a]:53"].map(|a| a.parse().unwrap());
    assert_eq!("10.96.0.10,[::1]:5353,fd00::a".parse(), Ok(Resolvers(expected.into())));
    for wrong in ["dns.example:53", "10.96.0.10:0", "10.96.0.10,", "10.96.0"] {
        assert!(wrong.parse::<Resolvers>().unwrap_err().contains("10.96.0.10:53"), "{wrong}");
    }
}

#[test]
fn namespaces_in_any_case() {
    let expected = ["a", "spire-system"].map(str::to_owned);
    assert_eq!("Spire-System, a,A".parse(), Ok(Namespaces(expected.into())));
    for wrong in ["a.b", "a,,b", "-a", "a b"] {
        assert!(wrong.parse::<Namespaces>().is_err(), "{wrong}");
    }
}

#[test]
fn a_host_is_an_address_or_a_name() {
    let name = |host: &str| HostPort { host: Host::Name(host.to_owned()), port: 18000 };
    assert_eq!("aether.Mesh.svc:18000".parse(), Ok(name("aether.mesh.svc")));
    assert_eq!("aether.mesh.svc.:18000".parse(), Ok(name("aether.mesh.svc.")));
    let ip = |host: &str| HostPort { host: Host::Ip(host.parse().unwrap()), port: 18000 };
    assert_eq!("127.0.0.1:18000".parse(), Ok(ip("127.0.0.1")));
    assert_eq!("[::1]:18000".parse(), Ok(ip("::1")));
    for wrong in ["aether", ":18000", "aether:0", "aether:65536", "::1:18000", "1.2.3:1", "a..b:1"]
    {
        assert!(wrong.parse::<HostPort>().is_err(), "{wrong}");
    }
}

#[test]
fn a_switch_takes_the_words_that_people_write_and_names_them() {
    for (word, on) in [("true", true), ("Yes", true), ("ON", true), ("1", true), ("y", true)]
        .into_iter()
        .chain([("false", false), ("no", false), ("Off", false), ("0", false), ("f", false)])
    {
        assert_eq!(switch(word), Ok(on), "{word}");
    }
    for word in ["", "maybe", "2", "enabled", " true"] {
        let error = switch(word).unwrap_err();
        assert!(error.contains("true, yes, on or 1") && error.contains("no, off or 0"), "{error}");
    }
}
