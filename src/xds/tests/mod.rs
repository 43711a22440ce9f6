//! Tests of the server, each named after its statement of the protocol.
