//! A client as CSDS tells of it.

use std::time::{Duration, SystemTime};

use envoy_types::pb::envoy::admin::v3::ClientResourceStatus;
use envoy_types::pb::envoy::service::status::v3::client_config::GenericXdsConfig;
use envoy_types::pb::envoy::service::status::v3::{ClientConfig, ConfigStatus};
use prost::Message;
use tonic::{Code, Status};

use super::world::cluster;
use crate::status::csds::{Room, client};
use crate::xds::{Config, Delivery, Kind, KindReport, Progress, Protocol, Refused, Report};

fn report() -> Report {
    let refused = Refused {
        nonce: 3,
        at: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
        words: "no such thing".into(),
        names: ["b".to_owned()].into(),
    };
    let of_type = KindReport {
        kind: Kind::Cluster,
        progress: Progress::Refused,
        wildcard: true,
        names: 0,
        due: 0,
        unanswered: 0,
        sent: None,
        accepted: None,
        refused: Some(refused),
    };
    Report {
        node: Some("pod/shop/cart".into()),
        peer: "127.0.0.1:5".into(),
        since: SystemTime::UNIX_EPOCH,
        protocol: Protocol::Delta,
        only: None,
        standing: None,
        generation: None,
        kinds: vec![of_type],
    }
}

fn configs() -> Vec<Config> {
    use Delivery::{NotSent, Refused, Synced, Unanswered};
    let config = |name: &str, delivery, there: bool| Config {
        kind: Kind::Cluster,
        name: name.into(),
        delivery,
        resource: there.then(|| cluster(name)),
    };
    vec![
        config("a", Synced, true),
        config("b", Refused, true),
        config("c", Unanswered, true),
        config("d", NotSent, true),
        config("e", Synced, false),
    ]
}

fn told(contents: bool, most: usize) -> Result<ClientConfig, Status> {
    client(&report(), configs(), contents, &mut Room::new(most))
}

#[test]
fn s31_each_delivery_has_its_status_and_the_refused_one_the_words() {
    use ConfigStatus::{Error, NotSent, Stale, Synced};
    let told = told(true, 1 << 20).unwrap();
    assert_eq!(told.node.unwrap().id, "pod/shop/cart");
    assert_eq!(told.client_scope, "127.0.0.1:5");
    let statuses: Vec<_> =
        told.generic_xds_configs.iter().map(GenericXdsConfig::config_status).collect();
    assert_eq!(statuses, [Synced, Error, Stale, NotSent, Synced]);
    for config in &told.generic_xds_configs {
        assert_eq!(config.type_url, Kind::Cluster.type_url());
        let absent = config.name == "e";
        assert_eq!((config.version_info.is_empty(), config.xds_config.is_none()), (absent, absent));
        let gone = config.client_status() == ClientResourceStatus::DoesNotExist;
        assert_eq!(gone, absent);
        assert_eq!(config.error_state.is_some(), config.name == "b");
    }
    let refused = &told.generic_xds_configs[1];
    let error = refused.error_state.as_ref().unwrap();
    assert_eq!((&*error.details, &error.version_info), ("no such thing", &refused.version_info));
    let at = error.last_update_attempt.as_ref().unwrap();
    assert_eq!((at.seconds, at.nanos), (1, 500_000_000));
}

#[test]
fn s31_contents_are_left_out_where_they_are_not_wanted() {
    let told = told(false, 1 << 20).unwrap();
    assert!(told.generic_xds_configs.iter().all(|config| config.xds_config.is_none()));
    assert!(!told.generic_xds_configs[0].version_info.is_empty());
}

#[test]
fn s31_an_answer_that_is_too_long_is_refused_with_the_way_out() {
    let len = told(true, 1 << 20).unwrap().encoded_len();
    // What is counted is at least what it takes.
    let status = told(true, len - 1).unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("exclude_resource_contents"), "{status}");
    assert!(told(true, len + 200).is_ok(), "and not much more");
}
