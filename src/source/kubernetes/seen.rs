//! An object as the API server sent it: decoded and trimmed as it arrives, so that no whole object
//! is kept for longer than it takes to read it.
//!
//! Decoding never fails for what an object holds: one that cannot be read costs itself alone, and
//! not the list or the watch that it came by.

use std::borrow::Cow;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use super::kinds::Followed;
use crate::index::{Id, Object};
use crate::source::manifest::{self, Problem};

/// What an object was read as.
#[derive(Debug, Clone)]
pub(super) enum Read {
    /// The object, and a hash of all that matters of it.
    Object(Box<(Id, Object, u128)>),
    /// Why it cannot be read, with its id where at least that can.
    Unreadable(Box<Unreadable>),
}

/// An object that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Unreadable {
    /// Which one, if it can be told.
    pub(super) id: Option<Id>,
    /// What is wrong with it.
    pub(super) finding: crate::model::Finding,
}

/// An object of a kind, read. What a watch needs to go on stands in the metadata, and no more.
#[derive(Debug, Clone)]
pub(super) struct Seen<K> {
    /// What it was read as.
    pub(super) read: Read,
    meta: ObjectMeta,
    kind: PhantomData<K>,
}

/// The parts of an object that are looked at before it is read as its kind.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

/// What a watch needs of the metadata, whatever else is in there.
#[derive(Deserialize, Default)]
struct Version {
    #[serde(rename = "resourceVersion")]
    resource_version: Option<String>,
}

impl<K: Followed> Seen<K> {
    /// Reads an object. `json` is a whole one, or its metadata alone where no more was asked for.
    pub(super) fn of(json: &str) -> Self {
        let envelope = serde_json::from_str(json).unwrap_or(Envelope { metadata: None });
        let metadata = envelope.metadata;
        let version: Version =
            metadata.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let read = if K::METADATA_ONLY {
            // It comes as a PartialObjectMetadata, which is not of the kind by its own words.
            let metadata = metadata.map_or("{}", RawValue::get);
            manifest::read_one(K::KIND, &format!("{{\"metadata\":{metadata}}}"), envelope.metadata)
        } else {
            manifest::read_one(K::KIND, json, metadata)
        };
        let read = match read {
            Ok(parsed) => {
                let hash = xxh3_128(&parsed.form);
                Read::Object(Box::new((parsed.id, parsed.object, hash)))
            }
            Err(problem) => {
                let Problem { finding, .. } = *problem;
                let id = manifest::id(K::KIND, metadata);
                Read::Unreadable(Box::new(Unreadable { id, finding }))
            }
        };
        let meta =
            ObjectMeta { resource_version: version.resource_version, ..ObjectMeta::default() };
        Self { read, meta, kind: PhantomData }
    }
}

impl<'de, K: Followed> Deserialize<'de> for Seen<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text of the object, not parsed: only its being JSON can fail. It can be had as text
        // since an API server writes the type of an event before the object.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::of(raw.get()))
    }
}

impl<K: Followed> kube::Resource for Seen<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn metadata_api() -> bool {
        K::METADATA_ONLY
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
