//! Who holds a key, a short name and a ClusterIP.

use serde_json::{Value, json};

use super::{annotated, found, get, merge, project, service};
use crate::model::{Reason, Severity};

fn created(at: &str, ip: &str) -> Value {
    json!({ "metadata": { "creationTimestamp": at }, "spec": { "clusterIP": ip, "clusterIPs": [ip] } })
}

fn with(mut base: Value, more: Value) -> Value {
    merge(&mut base, more);
    base
}

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-02-01T00:00:00Z";

/// A Service called `name` that claims shop/cart.
fn claimant(name: &str, at: &str, ip: &str) -> Value {
    with(service("shop", name, created(at, ip)), annotated("aether.io/service", "cart"))
}

#[test]
fn a_key_goes_by_the_order_of_claims() {
    let generated =
        with(claimant("cart", OLD, "10.96.0.1"), annotated("aether.io/generated-for", "shop/cart"));
    let table = [
        // A user's before a generated one, though the latter bears the name and is older.
        (generated, claimant("zz", NEW, "10.96.0.2"), "zz"),
        // Its own name before a renaming, though that is older.
        (claimant("cart", NEW, "10.96.0.1"), claimant("aa", OLD, "10.96.0.2"), "cart"),
        // The older of two renamed.
        (claimant("aa", NEW, "10.96.0.1"), claimant("zz", OLD, "10.96.0.2"), "zz"),
        // By name where the second is the same.
        (claimant("aa", NEW, "10.96.0.1"), claimant("zz", NEW, "10.96.0.2"), "aa"),
    ];
    for (a, b, winner) in table {
        for objects in [[a.clone(), b.clone()], [b, a]] {
            let projection = project(&objects);
            assert_eq!(&*get(&projection, "shop/cart").service, winner);
            let lost = found(&projection, Reason::ConflictingKey);
            assert_eq!(lost.len(), 1);
            assert_eq!(lost[0].severity, Severity::Problem);
            assert_ne!(&*lost[0].object.name, winner);
        }
    }
}

#[test]
fn a_service_without_a_time_is_the_youngest() {
    let mut ageless = claimant("aa", NEW, "10.96.0.1");
    ageless["metadata"]["creationTimestamp"] = Value::Null;
    let projection = project(&[ageless, claimant("zz", NEW, "10.96.0.2")]);
    assert_eq!(&*get(&projection, "shop/cart").service, "zz");
}

#[test]
fn a_short_name_goes_by_the_same_order_then_by_namespace() {
    let a = service("a", "cart", created(NEW, "10.96.0.1"));
    let b = service("b", "cart", created(OLD, "10.96.0.2"));
    let projection = project(&[a.clone(), b]);
    assert_eq!(projection.short_names()["cart"].namespace.as_ref(), "b");
    let lost = found(&projection, Reason::LostShortName);
    assert!(lost[0].message.contains("cart.aether.internal"), "{}", lost[0]);
    assert!(lost[0].message.contains("cart.a.aether.internal"), "{}", lost[0]);
    let same = service("b", "cart", created(NEW, "10.96.0.2"));
    assert_eq!(project(&[a, same]).short_names()["cart"].namespace.as_ref(), "a");
}

#[test]
fn a_headless_service_takes_no_short_name() {
    let mut headless = service("a", "cart", created(OLD, "None"));
    headless["spec"]["clusterIP"] = json!("None");
    let b = service("b", "cart", created(NEW, "10.96.0.2"));
    let projection = project(&[headless, b]);
    assert_eq!(projection.short_names()["cart"].namespace.as_ref(), "b");
    assert!(found(&projection, Reason::LostShortName).is_empty());
}

#[test]
fn the_loser_of_a_key_frees_its_short_name_and_address() {
    let winner = claimant("cart", OLD, "10.96.0.1");
    let loser = claimant("twin", OLD, "10.96.0.9");
    let third = service("shop", "third", created(NEW, "10.96.0.9"));
    let projection = project(&[winner, loser, third]);
    assert_eq!(get(&projection, "shop/third").owned_ips.len(), 1);
    assert!(found(&projection, Reason::ConflictingAddress).is_empty());
}

#[test]
fn of_two_with_one_cluster_ip_the_first_owns_it() {
    let a = service("shop", "a", created(NEW, "10.96.0.1"));
    let b = service("shop", "b", created(OLD, "10.96.0.1"));
    let projection = project(&[a, b]);
    assert!(get(&projection, "shop/a").owned_ips.is_empty());
    assert_eq!(get(&projection, "shop/a").cluster_ips.len(), 1);
    assert_eq!(get(&projection, "shop/b").owned_ips.len(), 1);
    assert_eq!(&*found(&projection, Reason::ConflictingAddress)[0].object.name, "a");
}
