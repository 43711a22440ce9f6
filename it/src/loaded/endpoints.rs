//! Load assignments. Envoy does not keep the message: its dump is made of the hosts that it has.

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// An assignment as the sorted list of its endpoints, each with all that decides how it is used.
pub(super) fn plain(assignment: &Value) -> Result<Value> {
    let mut hosts = Vec::new();
    for locality in list(assignment.get("endpoints")) {
        let text = |field: &str| locality.pointer(field).and_then(Value::as_str).unwrap_or("");
        for endpoint in list(locality.get("lb_endpoints")) {
            let address = endpoint.pointer("/endpoint/address/socket_address");
            let address = address.context("an endpoint has no address")?;
            hosts.push(json!({
                "priority": locality.get("priority").and_then(Value::as_u64).unwrap_or(0),
                "region": text("/locality/region"),
                "zone": text("/locality/zone"),
                "address": address.get("address"),
                "port": address.get("port_value"),
                // What is not said is 1, and unknown is healthy.
                "weight": endpoint.get("load_balancing_weight").and_then(Value::as_u64).unwrap_or(1),
                "health": endpoint.get("health_status").and_then(Value::as_str).unwrap_or("HEALTHY"),
            }));
        }
    }
    hosts.sort_by_key(Value::to_string);
    Ok(json!({"endpoints": hosts}))
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}
