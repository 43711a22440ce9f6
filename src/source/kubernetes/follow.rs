//! Follows all kinds, and hands on what changes.

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::Event;
use tokio::sync::mpsc;

use super::Connection;
use super::kinds::Followed;
use super::metrics::Metrics;
use super::observed::observed;
use super::reporter::Reporter;
use super::state::State;
use super::trouble::Trouble;
use super::watch::{Told, watch};
use crate::health::Part;
use crate::source::Update;

/// How many events are taken in a row before what they changed is handed on.
const IN_A_ROW: usize = 1024;

/// Follows the objects of an API server. The first update is their complete state, and every later
/// one a batch of changes as they come, without a fixed delay. The future ends when the receiver is
/// dropped, and for no other reason: what stands in the way is logged, said to `health` and
/// counted, the last good state is kept, and the API server is asked again.
pub async fn follow(
    connection: Connection,
    updates: mpsc::Sender<Update>,
    health: Part,
    metrics: Metrics,
) {
    let reporter = Reporter::new(&connection.server, health, metrics);
    let mut events = all(&connection, &reporter);
    let mut state = State::default();
    let says = reporter.run();
    tokio::pin!(says);
    loop {
        tokio::select! {
            told = events.next() => {
                let Some(told) = told else { return };
                take(&mut state, told, &reporter);
                for _ in 0..IN_A_ROW {
                    let Some(Some(told)) = events.next().now_or_never() else { break };
                    take(&mut state, told, &reporter);
                }
            }
            // Events are taken while the receiver is busy: what they change lies in one place.
            room = updates.reserve(), if state.has_update() => {
                let Ok(room) = room else { return };
                room.send(state.update());
                reporter.metrics().updated();
            }
            () = updates.closed() => return,
            () = &mut says => {}
        }
    }
}

fn all(connection: &Connection, reporter: &Reporter) -> SelectAll<BoxStream<'static, Told>> {
    fn one<K: Followed>(connection: &Connection, reporter: &Reporter) -> BoxStream<'static, Told> {
        watch::<K>(observed(&connection.client, K::KIND, reporter))
    }
    let all = [
        one::<Namespace>(connection, reporter),
        one::<Node>(connection, reporter),
        one::<ServiceAccount>(connection, reporter),
        one::<Service>(connection, reporter),
        one::<EndpointSlice>(connection, reporter),
        one::<Pod>(connection, reporter),
    ];
    futures::stream::select_all(all)
}

fn take(state: &mut State, (kind, told): Told, reporter: &Reporter) {
    let event = match told {
        Ok(event) => event,
        Err(error) => {
            tracing::debug!(kind = kind.as_str(), %error, "a watch failed");
            if let Some(trouble) = Trouble::of_watch(&error, kind) {
                reporter.failed(kind, trouble);
            }
            return;
        }
    };
    let complete = matches!(event, Event::InitDone);
    state.take(kind, event);
    if complete {
        reporter.metrics().listed(kind);
        reporter.missing(state.missing());
    }
    reporter.metrics().objects(kind, state.count(kind));
}
