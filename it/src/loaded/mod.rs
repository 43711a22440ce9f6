//! What an Envoy has loaded, compared with what `aether render` prints.

mod endpoints;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::envoy::Envoy;
use crate::eventually;
use crate::process::{output, tail};

/// The resources of one proxy by type and name, without what Envoy itself adds to its dump.
#[derive(Clone, PartialEq)]
pub struct Loaded(BTreeMap<(&'static str, String), Value>);

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The types: how `render` calls them, and the field that names one.
const TYPES: [(&str, &str); 4] = [
    ("listeners", "name"),
    ("routes", "name"),
    ("clusters", "name"),
    ("endpoints", "cluster_name"),
];

impl Loaded {
    /// What `aether render` prints for this node, with these options.
    pub fn rendered(manifests: &Path, node: &str, options: &[&str]) -> Result<Self> {
        let mut command = std::process::Command::new(crate::places::program("aether")?);
        command.args(["render", "--node", node, "--manifests"]).arg(manifests).args(options);
        Self::of_render(&serde_json::from_str(&output(&mut command)?)?)
    }

    /// The same, of its text.
    pub fn of_render(render: &Value) -> Result<Self> {
        let mut loaded = BTreeMap::new();
        for (kind, field) in TYPES {
            let list = render.get(kind).and_then(Value::as_array);
            for resource in list.with_context(|| format!("render prints no {kind}"))? {
                let name = resource.get(field).and_then(Value::as_str);
                let name = name.with_context(|| format!("one of the {kind} has no {field}"))?;
                loaded.insert((kind, name.to_owned()), plain(kind, resource.clone())?);
            }
        }
        Ok(Self(loaded))
    }

    /// What a config dump (with endpoints) holds; an error where anything in it is not active: warming, or refused.
    pub fn of_dump(dump: &Value) -> Result<Self> {
        let mut loaded = BTreeMap::new();
        let configs = dump.get("configs").and_then(Value::as_array);
        for config in configs.context("the config dump has another shape")? {
            for (part, kind, inside) in [
                ("dynamic_listeners", "listeners", "/active_state/listener"),
                ("dynamic_route_configs", "routes", "/route_config"),
                ("dynamic_active_clusters", "clusters", "/cluster"),
                ("dynamic_warming_clusters", "clusters", ""),
                ("dynamic_endpoint_configs", "endpoints", "/endpoint_config"),
            ] {
                let field = TYPES.iter().find(|of| of.0 == kind).map_or("name", |of| of.1);
                for entry in config.get(part).and_then(Value::as_array).into_iter().flatten() {
                    ensure!(part != "dynamic_warming_clusters", "a cluster is warming: {entry}");
                    for wrong in ["warming_state", "error_state"] {
                        ensure!(entry.get(wrong).is_none(), "one of the {kind} is in {wrong}");
                    }
                    // A listener that is gone drains for a while.
                    let Some(resource) = entry.pointer(inside) else { continue };
                    let name = resource.get(field).and_then(Value::as_str).unwrap_or_default();
                    let resource = plain(kind, resource.clone())?;
                    // Clusters of one assignment each show it, and must show the same.
                    if let Some(other) = loaded.insert((kind, name.to_owned()), resource.clone()) {
                        ensure!(other == resource, "{kind} {name} stands twice in two forms");
                    }
                }
            }
        }
        // A cluster that asks for no endpoints shows the hosts that its connections led to.
        let asks = |cluster: &Value| cluster.get("eds_cluster_config").is_some();
        let others = loaded.iter().filter(|(key, of)| key.0 == "clusters" && !asks(of));
        let others: Vec<String> = others.map(|(key, _)| key.1.clone()).collect();
        for name in others {
            loaded.remove(&("endpoints", name));
        }
        Ok(Self(loaded))
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The resource of this type (as `render` calls it) and name.
    pub fn get(&self, kind: &'static str, name: &str) -> Option<&Value> {
        self.0.get(&(kind, name.to_owned()))
    }

    /// The names of the resources of a type.
    pub fn names(&self, kind: &str) -> Vec<&str> {
        self.0.keys().filter(|key| key.0 == kind).map(|key| key.1.as_str()).collect()
    }

    /// An error that says what differs first, and how much differs, unless both are equal.
    pub fn must_equal(&self, dumped: &Self) -> Result<()> {
        let (mut first, mut count) = (None, 0);
        for key in self.0.keys().chain(dumped.0.keys().filter(|key| !self.0.contains_key(*key))) {
            let words = match (self.0.get(key), dumped.0.get(key)) {
                (Some(ours), Some(theirs)) if ours == theirs => continue,
                (Some(ours), Some(theirs)) => {
                    let at = difference(ours, theirs).unwrap_or_default();
                    format!("{} {}: {at}", key.0, key.1)
                }
                (Some(_), None) => format!("Envoy lacks {} {}", key.0, key.1),
                (None, _) => format!("Envoy alone has {} {}", key.0, key.1),
            };
            count += 1;
            first.get_or_insert(words);
        }
        match first {
            None => Ok(()),
            Some(first) => bail!("{count} resources differ from render's; {first}"),
        }
    }
}

/// Waits until this Envoy has loaded what was rendered, and nothing else; fails at once when it refused something.
pub async fn agrees(envoy: &Envoy, rendered: &Loaded, limit: Duration) -> Result<()> {
    let look = || async {
        let refusals = refusals(envoy).await;
        if !matches!(&refusals, Ok(refused) if refused.is_empty()) {
            return Ok(refusals);
        }
        rendered.must_equal(&Loaded::of_dump(&envoy.config_dump().await?)?)?;
        Ok(refusals)
    };
    let refused = eventually("what was rendered is loaded", limit, look).await??;
    ensure!(refused.is_empty(), "Envoy refused updates: {refused:?}\n{}", tail(&envoy.log(), 10));
    let warming = envoy.stats("warming").await?;
    ensure!(warming.values().all(|count| *count == 0), "not all is warm: {warming:?}");
    let active = envoy.stat("listener_manager.total_listeners_active").await?;
    let wanted = rendered.names("listeners").len();
    ensure!(active == wanted as u64, "{active} listeners are active and not {wanted}");
    Ok(())
}

/// The counters of refused updates, of any type, and of listeners that could not be made, that are not 0.
async fn refusals(envoy: &Envoy) -> Result<BTreeMap<String, u64>> {
    let mut counts = envoy.stats("(update_rejected|listener_create_failure)").await?;
    // Were they called otherwise, none would ever be found.
    for name in ["cluster_manager.cds.update_rejected", "listener_manager.listener_create_failure"]
    {
        ensure!(counts.contains_key(name), "Envoy has no counter {name}");
    }
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}

/// A resource in the form in which both are compared.
fn plain(kind: &str, mut resource: Value) -> Result<Value> {
    let Some(fields) = resource.as_object_mut() else { bail!("one of the {kind} is no object") };
    fields.remove("@type");
    match kind {
        "routes" => {
            // By VHDS they come in any order; what they stand for is in both.
            fields.remove("vhds");
            if let Some(hosts) = fields.get_mut("virtual_hosts").and_then(Value::as_array_mut) {
                hosts.sort_by_key(|host| host.get("name").map(Value::to_string));
            }
        }
        "endpoints" => return endpoints::plain(&resource),
        _ => {}
    }
    Ok(resource)
}

/// Where two values differ first, and how.
fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    let at = |key: &str, ours: Option<&Value>, theirs: Option<&Value>| match (ours, theirs) {
        (Some(ours), Some(theirs)) => difference(ours, theirs).map(|at| format!(".{key}{at}")),
        (ours, theirs) => {
            let show = |value: Option<&Value>| value.map_or("absent".to_owned(), short);
            Some(format!(".{key} is {} in render and {} in Envoy", show(ours), show(theirs)))
        }
    };
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.into_iter().find_map(|key| at(key, a.get(key), b.get(key)))
        }
        (Value::Array(a), Value::Array(b)) => {
            (0..a.len().max(b.len())).find_map(|n| at(&n.to_string(), a.get(n), b.get(n)))
        }
        _ if ours == theirs => None,
        _ => Some(format!(" is {} in render and {} in Envoy", short(ours), short(theirs))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 300 { text } else { text.chars().take(300).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
