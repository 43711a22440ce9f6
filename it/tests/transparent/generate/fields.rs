//! Fields of both directions: their names, how names are spelled, and values.

use fastrand::Rng;

use super::{chance, one};

/// Fields that a request may have. None of them is hop-by-hop.
const ASKED: &[(&str, &[&str])] = &[
    ("user-agent", &["curl/8.5.0", "", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101", "a, b"]),
    ("accept", &["*/*", "text/html,application/xml;q=0.9", ""]),
    ("accept-encoding", &["gzip, deflate, br", "identity;q=0", "zstd"]),
    ("accept-language", &["de-CH, de;q=0.5"]),
    ("authorization", &["Bearer abc.def.ghi", "Basic dXNlcjpwYXNz"]),
    ("cookie", &["a=1", "b=\"2\"; c=3", "d", "e=;f=,"]),
    ("cache-control", &["no-cache", "max-age=0"]),
    (
        "content-type",
        &["application/json", "multipart/form-data; boundary=\"a b\"", "text/plain;charset=UTF-8"],
    ),
    ("if-none-match", &["W/\"abc\"", "\"x\", \"y\"", "*"]),
    ("origin", &["http://said.shop", "null"]),
    (
        "referer",
        &[
            "http://said.shop/a?b",
            "http://said.shop/a#b",
            "/relative",
            "about:blank",
            "android-app://org.example",
        ],
    ),
    ("range", &["bytes=0-10, 20-"]),
    ("pragma", &["no-cache"]),
    ("date", &["Tue, 15 Nov 1994 08:12:31 GMT"]),
    ("via", &["1.1 proxy", "1.0 fred, 1.1 p.example.net"]),
    ("forwarded", &["for=192.0.2.60;proto=http;by=203.0.113.43", "for=\"[2001:db8::1]\""]),
    ("x-forwarded-for", &["10.1.2.3", "203.0.113.9, 10.0.0.1", "unknown", ""]),
    ("x-forwarded-proto", &["http", "https", "HTTPS", "wss", "", "http,https", "gopher"]),
    ("x-forwarded-host", &["outer.example", "outer.example:8443"]),
    ("x-forwarded-port", &["443"]),
    ("x-forwarded-client-cert", &["By=spiffe://a/b;Hash=00ff;URI=spiffe://c/d"]),
    ("x-forwarded-scheme", &["https"]),
    ("x-real-ip", &["192.0.2.1"]),
    ("x-request-id", &["7", "3f0e5b7e-9e42-4e5b-8b5a-0e9d1f8f7a11", ""]),
    ("x-client-trace-id", &["trace-1"]),
    ("x-b3-traceid", &["463ac35c9f6413ad48485a3953bb6124"]),
    ("x-b3-sampled", &["1", "0"]),
    ("traceparent", &["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "garbage"]),
    ("tracestate", &["congo=t61rcWkgMzE"]),
    ("baggage", &["userId=alice"]),
    ("x-ot-span-context", &["a;b;c;d"]),
    ("grpc-timeout", &["1S"]),
    ("x-envoy-attempt-count", &["3"]),
    ("x-envoy-decorator-operation", &["op"]),
    ("x-envoy-downstream-service-cluster", &["cluster"]),
    ("x-envoy-downstream-service-node", &["node"]),
    ("x-envoy-expected-rq-timeout-ms", &["5000"]),
    ("x-envoy-external-address", &["192.0.2.7"]),
    ("x-envoy-force-trace", &["true"]),
    ("x-envoy-hedge-on-per-try-timeout", &["true"]),
    ("x-envoy-ip-tags", &["a,b"]),
    ("x-envoy-original-path", &["/original"]),
    ("x-envoy-original-url", &["http://a/b"]),
    ("x-envoy-original-dst-host", &["192.0.2.9:81"]),
    ("x-envoy-peer-metadata", &["Cg=="]),
    ("x-envoy-retriable-header-names", &["x-a"]),
    ("x-envoy-retriable-status-codes", &["503"]),
    ("x-envoy-retry-grpc-on", &["unavailable"]),
    ("x-envoy-upstream-alt-stat-name", &["alt"]),
    ("x-envoy-upstream-canary", &["true"]),
    ("x-envoy-upstream-rq-per-try-timeout-ms", &["4000"]),
    ("x-envoy-upstream-rq-timeout-alt-response", &["1"]),
    ("x-envoy-upstream-stream-duration-ms", &["5000"]),
    ("x-envoy-unheard-of", &["x"]),
    ("x-envoy-retry-on", &["5xx"]),
    ("x-envoy-max-retries", &["7"]),
    ("x-envoy-upstream-rq-timeout-ms", &["9000"]),
    ("x-envoy-internal", &["true", "false"]),
    ("x-aether-forwarded-proto", &["spoofed"]),
    ("priority", &["u=1, i"]),
    ("upgrade-insecure-requests", &["1"]),
    ("sec-fetch-mode", &["navigate"]),
    ("access-control-request-method", &["PUT"]),
    ("x-http-method-override", &["DELETE"]),
    ("from", &["a@example.com"]),
    ("max-forwards", &["10"]),
    ("server", &["a client may"]),
    ("content-encoding", &["identity"]),
];

/// Fields that an answer may have.
const ANSWERED: &[(&str, &[&str])] = &[
    ("server", &["nginx/1.25.3", "", "envoy", "Apache (Unix)"]),
    ("date", &["Tue, 15 Nov 1994 08:12:31 GMT", "yesterday", ""]),
    ("set-cookie", &["a=1; Path=/; HttpOnly", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "c"]),
    ("content-type", &["text/html; charset=utf-8", "application/json", ""]),
    ("cache-control", &["private, max-age=0", "no-store"]),
    ("etag", &["\"33a64df5\"", "W/\"0815\""]),
    ("last-modified", &["Wed, 21 Oct 2015 07:28:00 GMT"]),
    ("expires", &["0", "-1"]),
    ("vary", &["Accept-Encoding", "*", "Origin"]),
    ("location", &["/relative?x=//y", "http://said.shop:80/a%2Fb", "https://elsewhere.example/"]),
    ("www-authenticate", &["Basic realm=\"a, b\"", "Negotiate", "Digest qop=\"auth\""]),
    ("link", &["</style.css>; rel=preload", "<https://a.example>; rel=preconnect"]),
    ("age", &["12"]),
    ("allow", &["GET, HEAD"]),
    ("retry-after", &["120"]),
    ("via", &["1.1 varnish"]),
    ("pragma", &["no-cache"]),
    ("content-encoding", &["identity", "gzip"]),
    ("content-disposition", &["attachment; filename=\"a;b\""]),
    ("content-range", &["bytes 0-10/20"]),
    ("accept-ranges", &["bytes"]),
    ("strict-transport-security", &["max-age=63072000"]),
    ("access-control-allow-origin", &["*"]),
    ("access-control-expose-headers", &["x-a, x-b"]),
    ("alt-svc", &["h3=\":443\"; ma=2592000", "clear"]),
    ("server-timing", &["db;dur=53"]),
    ("x-powered-by", &["PHP/8.3"]),
    ("x-request-id", &["answer-7"]),
    ("x-forwarded-proto", &["https"]),
    ("x-content-type-options", &["nosniff"]),
    ("grpc-status", &["0", "14"]),
    ("grpc-message", &["a%20b"]),
    ("x-envoy-upstream-service-time", &["12"]),
    ("x-envoy-upstream-healthchecked-cluster", &["c"]),
    ("x-envoy-upstream-canary", &["true"]),
    ("x-envoy-attempt-count", &["1"]),
    ("x-envoy-degraded", &["true"]),
    ("x-envoy-immediate-health-check-fail", &["true"]),
    ("x-envoy-overloaded", &["true"]),
    ("x-envoy-local-overloaded", &["true"]),
    ("x-envoy-ratelimited", &["true"]),
    ("x-envoy-cluster-", &["x"]),
    ("x-envoy-decorator-operation", &["op"]),
    ("x-envoy-is-timeout-retry", &["x"]),
    ("proxy-status", &["proxy; error=http_request_error"]),
    ("x-http2-stream-id", &["5"]),
];

/// Names and values that belong to nobody.
const NAMES: &[&str] =
    &["x-a", "X-API-Key", "x_under_score", "x.dot", "!#$%&'*+-.^_`|~", "7", "x-empty", "eTaG2"];
const VALUES: &[&str] = &[
    "",
    "plain",
    "two  spaces",
    "with\ttab",
    "\"quo,ted\"",
    "a,b, c",
    "ends;",
    "%REQ(host)% %%",
    "caf\u{e9} \u{2603}",
    "{}[]<>\\|`^",
];

/// Some fields of a request.
pub fn asked(rng: &mut Rng) -> Vec<(String, String)> {
    some(rng, ASKED)
}

/// Some fields of an answer.
pub fn answered(rng: &mut Rng) -> Vec<(String, String)> {
    some(rng, ANSWERED)
}

/// Some trailers.
pub fn trailers(rng: &mut Rng) -> Vec<(String, String)> {
    let count = if chance(rng, 50) { 0 } else { 1 + rng.usize(..3) };
    let of = ["x-checksum", "Server-Timing", "x-a", "grpc-status", "Expires"];
    (0..count).map(|_| (one(rng, &of).to_owned(), one(rng, VALUES).to_owned())).collect()
}

fn some(rng: &mut Rng, known: &[(&str, &[&str])]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for _ in 0..rng.usize(..12) {
        let (name, value) = if chance(rng, 30) {
            (one(rng, NAMES), one(rng, VALUES))
        } else {
            let (name, values) = known[rng.usize(..known.len())];
            (name, if chance(rng, 5) { one(rng, VALUES) } else { one(rng, values) })
        };
        let name = spell(rng, name);
        // The same name again, now and then, in the same or in another spelling.
        for again in 0..if chance(rng, 15) { 1 + rng.usize(..3) } else { 1 } {
            let value = if again == 0 { value } else { one(rng, &[value, "again", ""]) };
            fields.push((name.clone(), value.to_owned()));
        }
    }
    // What was put together stays in its order relative to its like, elsewhere anything may stand between.
    if rng.bool() {
        rng.shuffle(&mut fields);
    }
    fields
}

/// A name as some application writes it.
pub(super) fn spell(rng: &mut Rng, name: &str) -> String {
    match rng.u32(..4) {
        0 => name.to_owned(),
        1 => name.to_ascii_uppercase(),
        2 => {
            let mut words: Vec<String> = name.split('-').map(str::to_owned).collect();
            for word in &mut words {
                if let Some(first) = word.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
            }
            words.join("-")
        }
        _ => name.chars().map(|c| if rng.bool() { c.to_ascii_uppercase() } else { c }).collect(),
    }
}
