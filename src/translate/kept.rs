//! Request fields that the HTTP connection manager takes out or sets, and that reach the backend as the client sent
//! them.
//!
//! Before Envoy looks, each is copied into a private field; before the router, it is put back where it is gone. No
//! private field leaves the proxy. What the router itself takes out cannot be put back: nothing comes after it.

use envoy_types::pb::envoy::config::common::mutation_rules::v3::HeaderMutation as Mutation;
use envoy_types::pb::envoy::config::common::mutation_rules::v3::header_mutation::Action;
use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction as Write;
use envoy_types::pb::envoy::config::core::v3::{
    HeaderValue, HeaderValueOption, TypedExtensionConfig,
};
use envoy_types::pb::envoy::extensions::filters::http::header_mutation::v3::{
    HeaderMutation as MutationFilter, Mutations,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpFilter, http_filter::ConfigType,
};
use envoy_types::pb::envoy::extensions::http::early_header_mutation::header_mutation::v3::HeaderMutation as EarlyMutation;

use super::proto::{any, extension};

/// What every private field's name begins with.
const PRIVATE: &str = "x-aether-kept-";
/// Set where the client sent none, and believed where it did: the scheme of a request comes from it, and one whose
/// field is empty finds no route. So Envoy sees none, and sets what is true.
const SET: &str = "x-forwarded-proto";
/// Taken out: `referer` where it is no URL that Envoy can read or stands twice, the others always, since no client of
/// ours is one that Envoy would trust.
const TAKEN: [&str; 5] = [
    "referer",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-internal",
    "x-envoy-ip-tags",
    "x-envoy-original-url",
];
/// Obeyed by the router: a limit on how long an answer may take, which is none of its business. What else the router
/// would obey, the connection manager takes out.
const OBEYED: &str = "x-envoy-upstream-stream-duration-ms";

/// Before Envoy looks at the fields.
pub(super) fn remember() -> TypedExtensionConfig {
    let copy = |name: &str| write(&private(name), name, Write::OverwriteIfExistsOrAdd);
    let mut mutations = vec![copy(SET), remove(SET), remove(OBEYED)];
    mutations.extend(TAKEN.map(copy));
    extension("envoy.http.early_header_mutation.header_mutation", EarlyMutation { mutations })
}

/// The HTTP filter that puts things back.
pub(super) fn put_back() -> HttpFilter {
    // Here it is Envoy's own.
    let mut request_mutations = vec![remove(SET)];
    for name in [SET].into_iter().chain(TAKEN) {
        let private = private(name);
        request_mutations.push(write(name, &private, Write::AddIfAbsent));
        request_mutations.push(remove(&private));
    }
    let mutations = Mutations { request_mutations, ..Mutations::default() };
    let filter = MutationFilter { mutations: Some(mutations), ..MutationFilter::default() };
    HttpFilter {
        name: "envoy.filters.http.header_mutation".to_owned(),
        config_type: any(filter).map(ConfigType::TypedConfig),
        ..HttpFilter::default()
    }
}

/// Copies a field, unless there is none or an empty one.
fn write(to: &str, from: &str, how: Write) -> Mutation {
    let header = HeaderValue {
        key: to.to_owned(),
        value: format!("%REQ({from})%"),
        ..HeaderValue::default()
    };
    mutation(Action::Append(HeaderValueOption {
        header: Some(header),
        append_action: how.into(),
        ..HeaderValueOption::default()
    }))
}

fn remove(name: &str) -> Mutation {
    mutation(Action::Remove(name.to_owned()))
}

fn mutation(action: Action) -> Mutation {
    Mutation { action: Some(action) }
}

fn private(name: &str) -> String {
    format!("{PRIVATE}{name}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use std::collections::BTreeSet;

    use prost::Message as _;

    use super::*;

    /// The fields that mutations write, and those that they remove.
    fn touched(mutations: &[Mutation]) -> [BTreeSet<String>; 2] {
        let mut touched = [BTreeSet::new(), BTreeSet::new()];
        for mutation in mutations {
            match mutation.action.as_ref().unwrap() {
                Action::Append(option) => {
                    touched[0].insert(option.header.as_ref().unwrap().key.clone())
                }
                Action::Remove(name) => touched[1].insert(name.clone()),
                Action::RemoveOnMatch(_) => panic!("nothing is removed by pattern"),
            };
        }
        touched
    }

    #[test]
    fn every_private_field_is_removed_before_the_router() {
        let early = EarlyMutation::decode(&*remember().typed_config.unwrap().value).unwrap();
        let [copied, _] = touched(&early.mutations);
        let Some(ConfigType::TypedConfig(config)) = put_back().config_type else {
            panic!("the filter has a configuration");
        };
        let put_back = MutationFilter::decode(&*config.value).unwrap().mutations.unwrap();
        let [written, removed] = touched(&put_back.request_mutations);
        let kept: BTreeSet<String> = [SET].into_iter().chain(TAKEN).map(str::to_owned).collect();
        assert_eq!(written, kept);
        assert_eq!(copied, kept.iter().map(|name| private(name)).collect());
        assert!(removed.is_superset(&copied), "{removed:?}");
    }
}
