//! The event object, within the limits of `events.k8s.io/v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::Message;

/// The most bytes of a note.
const NOTE: usize = 1024;
/// The most characters of the reporting instance.
const INSTANCE: usize = 128;
/// The most of the object's name in that of its event: 253 less a dot and the hash.
const NAME: usize = 253 - 17;

/// Which program writes it.
const CONTROLLER: &str = "aether.io/control-plane";

/// The namespace of an event: that of its object, and `default` for objects that have none.
pub(super) fn namespace(message: &Message) -> &str {
    let namespace = &*message.object.namespace;
    if namespace.is_empty() { "default" } else { namespace }
}

/// The name of an event: the same from whichever replica, so that it is written once.
pub(super) fn name(message: &Message, uid: &str) -> String {
    let object = &message.object;
    let text = [object.kind, &object.name, uid, message.reason.name, &message.note].join("\n");
    let head = head(&object.name, NAME).trim_end_matches(['.', '-']);
    format!("{head}.{:016x}", xxh3_64(text.as_bytes()))
}

/// The event, as it is created. The uid is what `kubectl describe` finds it by.
pub(super) fn event(
    message: &Message,
    api_version: &str,
    uid: &str,
    instance: &str,
    now: Timestamp,
) -> Value {
    let object = &message.object;
    let mut regarding = json!({
        "apiVersion": api_version,
        "kind": object.kind,
        "name": &*object.name,
        "uid": uid,
    });
    if !object.namespace.is_empty() {
        regarding["namespace"] = (*object.namespace).into();
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "namespace": namespace(message), "name": name(message, uid) },
        "eventTime": time(now),
        "reportingController": CONTROLLER,
        "reportingInstance": head(instance, INSTANCE),
        "action": message.reason.action,
        "reason": message.reason.name,
        "regarding": regarding,
        "note": cut(&message.note),
        "type": message.kind.as_str(),
    })
}

/// What is changed in an event that is told again. Nothing else of it may change.
pub(super) fn again(count: u32, now: Timestamp) -> Value {
    // A series has at least two.
    json!({ "series": { "count": count.max(2), "lastObservedTime": time(now) } })
}

/// The time in microseconds, as the API wants it.
fn time(now: Timestamp) -> Value {
    serde_json::to_value(MicroTime(now)).unwrap_or_default()
}

/// A note within its limit.
fn cut(note: &str) -> String {
    const MORE: &str = "…";
    if note.len() <= NOTE {
        return note.to_owned();
    }
    format!("{}{MORE}", head(note, NOTE - MORE.len()))
}

/// The first bytes of a text, no character cut apart.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::events::{EventReason, Kind};
    use crate::model::ObjectRef;

    fn message(name: &str, note: &str) -> Message {
        Message {
            object: ObjectRef::new("Service", "shop", name),
            reason: EventReason::REFUSED,
            kind: Kind::Warning,
            note: note.to_owned(),
        }
    }

    #[test]
    fn notes_end_at_their_limit_and_at_a_character() {
        assert_eq!(cut(&"a".repeat(1024)), "a".repeat(1024));
        assert_eq!(cut(&"a".repeat(1025)), format!("{}…", "a".repeat(1021)));
        // é has two bytes: 510 of them end at 1020, and the next would be cut apart.
        let long = cut(&"é".repeat(600));
        assert!(long == format!("{}…", "é".repeat(510)) && long.len() <= 1024, "{}", long.len());
    }

    #[test]
    fn names_end_at_their_limit_and_are_names() {
        let long = format!("{}.{}", "a".repeat(235), "b".repeat(17));
        assert_eq!(long.len(), 253);
        let name = name(&message(&long, "x"), "u");
        assert!(name.len() <= 253 && !name.contains(".."), "{name}");
        assert!(name.starts_with(&"a".repeat(235)));
    }

    #[test]
    fn one_message_is_one_event_and_another_is_another() {
        let base = name(&message("a", "x"), "u");
        assert_eq!(name(&message("a", "x"), "u"), base);
        for other in [
            name(&message("b", "x"), "u"),
            name(&message("a", "y"), "u"),
            name(&message("a", "x"), "v"),
        ] {
            assert_ne!(other, base);
        }
    }

    #[test]
    fn an_event_has_what_the_api_wants() {
        let now = Timestamp::from_microsecond(1_000_001).unwrap();
        let event = event(&message("a", "x"), "v1", "u", &"i".repeat(200), now);
        assert_eq!(event["eventTime"], "1970-01-01T00:00:01.000001Z");
        assert_eq!(event["reportingInstance"].as_str().unwrap().len(), 128);
        assert_eq!(event["regarding"]["namespace"], "shop");
        assert_eq!(again(1, now)["series"]["count"], 2);
        let of_cluster = Message { object: ObjectRef::new("Node", "", "n"), ..message("n", "x") };
        assert_eq!(namespace(&of_cluster), "default");
    }
}
