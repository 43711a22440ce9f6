//! The objects of an API server, listed once.

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client};

use super::Connection;
use super::kinds::{Followed, selector};
use super::seen::{Read, Seen};
use super::state::State;
use super::trouble::Trouble;
use crate::index::ObjectKind;
use crate::source::Update;

/// How many objects a page holds.
const PAGE: u32 = 500;

/// How often a list is begun anew because the API server forgot where it stood.
const ANEW: usize = 3;

/// Why the objects cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(String);

/// Lists everything once. Pods are listed whole, also those that are not in the mesh, since whoever
/// looks once asks about them too. What could not be read is in the findings.
///
/// # Errors
/// Where a kind cannot be listed, with the permission that is missing or what else is in the way.
pub async fn load(connection: &Connection) -> Result<Update, LoadError> {
    let client = &connection.client;
    let lists = futures::try_join!(
        list::<Namespace>(client),
        list::<Node>(client),
        list::<ServiceAccount>(client),
        list::<Service>(client),
        list::<EndpointSlice>(client),
        list::<Pod>(client),
    );
    let lists = lists.map_err(|trouble| LoadError(trouble.told(&connection.server).to_string()))?;
    let mut state = State::default();
    for (kind, objects) in [lists.0, lists.1, lists.2, lists.3, lists.4, lists.5] {
        state.take(kind, Event::Init);
        for object in objects {
            state.take(kind, Event::InitApply(object));
        }
        state.take(kind, Event::InitDone);
    }
    Ok(state.update())
}

async fn list<K: Followed>(client: &Client) -> Result<(ObjectKind, Vec<Read>), Trouble> {
    let api = Api::<Seen<K>>::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    if let Some(selector) = selector(K::KIND).filter(|_| K::KIND != ObjectKind::Pod) {
        params = params.labels(selector);
    }
    let mut anew = 0;
    let mut objects = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Err(kube::Error::Api(status)) if status.code == 410 && anew < ANEW => {
                anew += 1;
                params.continue_token = None;
                objects.clear();
                continue;
            }
            page => page.map_err(|error| Trouble::of(&error, "list", K::KIND))?,
        };
        objects.extend(page.items.into_iter().map(|seen| seen.read));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok((K::KIND, objects));
        }
    }
}
