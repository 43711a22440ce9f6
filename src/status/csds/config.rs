//! One client of a CSDS response.

use std::sync::Arc;
use std::time::SystemTime;

use envoy_types::pb::envoy::admin::v3::{ClientResourceStatus, UpdateFailureState};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::status::v3::client_config::GenericXdsConfig;
use envoy_types::pb::envoy::service::status::v3::{ClientConfig, ConfigStatus};
use envoy_types::pb::google::protobuf::{Any, Timestamp};
use prost::Message;
use tonic::Status;

use crate::xds::{Config, Delivery, Kind, KindReport, Refused, Report, Resource};

/// How many bytes an answer may still have.
#[derive(Debug)]
pub(in crate::status) struct Room {
    most: usize,
    left: usize,
}

impl Room {
    pub(in crate::status) fn new(most: usize) -> Self {
        Self { most, left: most }
    }

    /// Takes what is needed for a part.
    fn take(&mut self, bytes: usize) -> Result<(), Status> {
        // A key and a length stand before each part.
        let left = self.left.checked_sub(bytes + 8);
        self.left = left.ok_or_else(|| {
            Status::resource_exhausted(format!(
                "the answer has more than {} bytes: ask for fewer clients with node_matchers, \
                 or set exclude_resource_contents",
                self.most
            ))
        })?;
        Ok(())
    }
}

/// What CSDS says of a stream. A node with two streams is there twice; `client_scope` tells them
/// apart by where they come from.
pub(in crate::status) fn client(
    report: &Report,
    configs: Vec<Config>,
    contents: bool,
    room: &mut Room,
) -> Result<ClientConfig, Status> {
    let id = report.node.as_deref().unwrap_or_default().to_owned();
    room.take(id.len() + report.peer.len() + 16)?;
    let generic = |config: Config| {
        let of_type = report.kinds.iter().find(|of_type| of_type.kind == config.kind);
        // Before it is made, so that what does not fit is not made.
        let body = config.resource.as_ref().filter(|_| contents).map_or(0, Resource::any_len);
        room.take(body)?;
        let generic = generic(config, of_type, contents);
        room.take(generic.encoded_len().saturating_sub(body))?;
        Ok(generic)
    };
    let generic_xds_configs = configs.into_iter().map(generic).collect::<Result<_, Status>>()?;
    Ok(ClientConfig {
        node: Some(Node { id, ..Node::default() }),
        generic_xds_configs,
        client_scope: report.peer.to_string(),
        ..ClientConfig::default()
    })
}

fn generic(config: Config, of_type: Option<&KindReport>, contents: bool) -> GenericXdsConfig {
    let Config { kind, name, delivery, resource } = config;
    let version_info = resource.as_ref().map(|resource| resource.version().to_string());
    let version_info = version_info.unwrap_or_default();
    let status = match delivery {
        Delivery::Synced => ConfigStatus::Synced,
        Delivery::Unanswered => ConfigStatus::Stale,
        Delivery::Refused => ConfigStatus::Error,
        Delivery::NotSent => ConfigStatus::NotSent,
    };
    let absent = delivery == Delivery::Synced && resource.is_none();
    let client_status =
        if absent { ClientResourceStatus::DoesNotExist } else { ClientResourceStatus::Unknown };
    let refused = of_type.and_then(|of_type| of_type.refused.as_ref());
    let error_state = refused.filter(|_| delivery == Delivery::Refused);
    let error_state = error_state.map(|refused| failure(refused, &version_info));
    GenericXdsConfig {
        type_url: kind.type_url().to_owned(),
        name: name.to_string(),
        version_info,
        xds_config: resource.filter(|_| contents).map(|resource| any(kind, &resource)),
        last_updated: None,
        config_status: status.into(),
        client_status: client_status.into(),
        error_state,
        is_static_resource: false,
    }
}

fn failure(Refused { at, words, .. }: &Refused, version: &str) -> UpdateFailureState {
    UpdateFailureState {
        failed_configuration: None,
        last_update_attempt: Some(timestamp(*at)),
        details: Arc::as_ref(words).to_owned(),
        version_info: version.to_owned(),
    }
}

fn any(kind: Kind, resource: &Resource) -> Any {
    let value = resource.body().to_bytes().to_vec();
    Any { type_url: kind.type_url().to_owned(), value }
}

/// A time as protobuf has it; one before 1970 is 1970.
fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { seconds, nanos: since.subsec_nanos().cast_signed() }
}
