//! `x-forwarded-proto`, which the HTTP connection manager sets where the client did not.
//!
//! What the client sent stays where it stands. That it sent any is remembered in a private header
//! before Envoy looks; without that memory the header is taken out again before the router. The
//! private header never leaves the proxy.

use envoy_types::pb::envoy::config::common::mutation_rules::v3::HeaderMutation as Mutation;
use envoy_types::pb::envoy::config::common::mutation_rules::v3::header_mutation::Action;
use envoy_types::pb::envoy::config::core::v3::{
    HeaderValue, HeaderValueOption, TypedExtensionConfig,
};
use envoy_types::pb::envoy::extensions::common::matching::v3::ExtensionWithMatcher;
use envoy_types::pb::envoy::extensions::filters::common::matcher::action::v3::SkipFilter;
use envoy_types::pb::envoy::extensions::filters::http::header_mutation::v3::{
    HeaderMutation as MutationFilter, Mutations,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpFilter, http_filter::ConfigType,
};
use envoy_types::pb::envoy::extensions::http::early_header_mutation::header_mutation::v3::HeaderMutation as EarlyMutation;
use envoy_types::pb::envoy::r#type::matcher::v3::HttpRequestHeaderMatchInput;
use envoy_types::pb::xds::core::v3::TypedExtensionConfig as XdsExtension;
use envoy_types::pb::xds::r#type::matcher::v3::matcher::matcher_list::predicate::single_predicate;
use envoy_types::pb::xds::r#type::matcher::v3::matcher::matcher_list::predicate::{
    MatchType, SinglePredicate,
};
use envoy_types::pb::xds::r#type::matcher::v3::matcher::matcher_list::{FieldMatcher, Predicate};
use envoy_types::pb::xds::r#type::matcher::v3::matcher::{
    MatcherList, MatcherType, OnMatch, on_match,
};
use envoy_types::pb::xds::r#type::matcher::v3::regex_matcher::{EngineType, GoogleRe2};
use envoy_types::pb::xds::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::xds::r#type::matcher::v3::{Matcher, RegexMatcher, StringMatcher};
use prost::{Message, Name};

use super::proto::{any, extension};

/// The private header.
pub(super) const MEMORY: &str = "x-aether-forwarded-proto";

/// Before Envoy looks at the headers: remembers what the client sent.
pub(super) fn remember() -> TypedExtensionConfig {
    let sent = HeaderValueOption {
        header: Some(HeaderValue {
            key: MEMORY.to_owned(),
            value: "%REQ(X-FORWARDED-PROTO)%".to_owned(),
            ..HeaderValue::default()
        }),
        ..HeaderValueOption::default()
    };
    let early = EarlyMutation { mutations: vec![remove(MEMORY), mutation(Action::Append(sent))] };
    extension("envoy.http.early_header_mutation.header_mutation", early)
}

/// The HTTP filter that takes `x-forwarded-proto` out where the client sent none.
pub(super) fn forget() -> HttpFilter {
    let name = "envoy.filters.http.header_mutation";
    let take_out = MutationFilter {
        mutations: Some(Mutations {
            request_mutations: vec![remove("x-forwarded-proto")],
            ..Mutations::default()
        }),
        ..MutationFilter::default()
    };
    let unless_sent = ExtensionWithMatcher {
        xds_matcher: Some(skip_if_remembered()),
        extension_config: Some(extension(name, take_out)),
        ..ExtensionWithMatcher::default()
    };
    HttpFilter {
        name: name.to_owned(),
        config_type: any(unless_sent).map(ConfigType::TypedConfig),
        ..HttpFilter::default()
    }
}

fn skip_if_remembered() -> Matcher {
    let anything = RegexMatcher {
        regex: ".+".to_owned(),
        engine_type: Some(EngineType::GoogleRe2(GoogleRe2 {})),
    };
    let value = StringMatcher {
        match_pattern: Some(MatchPattern::SafeRegex(anything)),
        ..StringMatcher::default()
    };
    let input = HttpRequestHeaderMatchInput { header_name: MEMORY.to_owned() };
    let remembered = SinglePredicate {
        input: Some(xds_extension("request-headers", input)),
        matcher: Some(single_predicate::Matcher::ValueMatch(value)),
    };
    let skip = OnMatch {
        on_match: Some(on_match::OnMatch::Action(xds_extension("skip", SkipFilter {}))),
        ..OnMatch::default()
    };
    let field = FieldMatcher {
        predicate: Some(Predicate { match_type: Some(MatchType::SinglePredicate(remembered)) }),
        on_match: Some(skip),
    };
    Matcher {
        matcher_type: Some(MatcherType::MatcherList(MatcherList { matchers: vec![field] })),
        ..Matcher::default()
    }
}

fn remove(header: &str) -> Mutation {
    mutation(Action::Remove(header.to_owned()))
}

fn mutation(action: Action) -> Mutation {
    Mutation { action: Some(action) }
}

fn xds_extension<T: Name + Message>(name: &str, config: T) -> XdsExtension {
    XdsExtension { name: name.to_owned(), typed_config: any(config) }
}
