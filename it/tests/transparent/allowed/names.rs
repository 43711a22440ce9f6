//! The fields that Envoy knows by name, where that shows.

/// Fields of requests whose repetitions become one.
pub const JOINED_IN_REQUESTS: &[&str] = &[
    "accept",
    "accept-encoding",
    "access-control-request-method",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-type",
    "grpc-timeout",
    "if-none-match",
    "origin",
    "pragma",
    "referer",
    "user-agent",
    "via",
    "x-client-trace-id",
    "x-envoy-attempt-count",
    "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster",
    "x-envoy-downstream-service-node",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-external-address",
    "x-envoy-internal",
    "x-envoy-ip-tags",
    "x-envoy-original-path",
    "x-envoy-original-url",
    "x-forwarded-client-cert",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-request-id",
];

/// Fields of answers whose repetitions become one.
pub const JOINED_IN_ANSWERS: &[&str] = &[
    "access-control-allow-origin",
    "access-control-expose-headers",
    "age",
    "cache-control",
    "content-encoding",
    "content-type",
    "date",
    "etag",
    "expires",
    "grpc-message",
    "grpc-status",
    "last-modified",
    "location",
    "proxy-status",
    "server",
    "vary",
    "via",
    "x-envoy-attempt-count",
    "x-envoy-decorator-operation",
    "x-envoy-degraded",
    "x-envoy-immediate-health-check-fail",
    "x-envoy-ratelimited",
    "x-envoy-upstream-canary",
    "x-envoy-upstream-healthchecked-cluster",
    "x-envoy-upstream-service-time",
    "x-request-id",
];

/// Trailers of answers whose repetitions become one.
pub const JOINED_IN_TRAILERS: &[&str] = &["grpc-message", "grpc-status"];

/// What the mesh puts back at the end of a request's fields, in this order, unless it is empty.
pub const PUT_BACK: &[&str] = &[
    "x-forwarded-proto",
    "referer",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-internal",
    "x-envoy-ip-tags",
    "x-envoy-original-url",
];

/// What the router takes from a request (the connection manager, too, so that it is not obeyed).
pub const TAKEN: &[&str] = &[
    "x-envoy-force-trace",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-max-retries",
    "x-envoy-retriable-header-names",
    "x-envoy-retriable-status-codes",
    "x-envoy-retry-grpc-on",
    "x-envoy-retry-on",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-stream-duration-ms",
];
