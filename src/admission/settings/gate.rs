//! The identity gate's settings, checked before anything starts, with all that is wrong at once.

use std::fmt;

use super::{image, quantity};
use crate::admission::keys;
use crate::model::quoted;

/// The identity gate's settings as they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSpec {
    /// The image that holds `/identity-ready`.
    pub image: String,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: String,
    /// The path of the Workload API's socket inside the container.
    pub socket: String,
    /// How long the gate waits before it fails; `None`: its own default.
    pub timeout: Option<String>,
    /// The user that it runs as.
    pub user: i64,
    /// What it asks for. What is `None` is taken from the pod.
    pub cpu: ResourceSpec,
    /// Likewise.
    pub memory: ResourceSpec,
}

impl Default for GateSpec {
    /// The contract's defaults. There is none for the image.
    fn default() -> Self {
        Self {
            image: String::new(),
            pull_policy: "IfNotPresent".to_owned(),
            socket: "/run/secrets/workload-spiffe-uds/socket".to_owned(),
            timeout: None,
            user: 65532,
            cpu: ResourceSpec::default(),
            memory: ResourceSpec::default(),
        }
    }
}

/// A request and a limit, as Kubernetes' quantities. Where one of the two is given, the pod's own
/// count for neither: a request from here and a limit from there may contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceSpec {
    /// The request.
    pub request: Option<String>,
    /// The limit.
    pub limit: Option<String>,
}

impl ResourceSpec {
    /// Whether the configuration says anything.
    pub fn is_set(&self) -> bool {
        self.request.is_some() || self.limit.is_some()
    }
}

/// The identity gate's settings, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    spec: GateSpec,
    folder: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, as its option ends: `socket` of `--identity-gate-socket`.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// What is wrong with it, and what to write instead.
    pub problem: String,
}

/// All that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { setting, value, problem }) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(f, "{between}--identity-gate-{setting} {}: {problem}", quoted(value))?;
        }
        Ok(())
    }
}

impl Gate {
    /// Checks the settings.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn new(spec: GateSpec) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut wrong = |setting, value: &str, problem: Option<String>| {
            let value = value.to_owned();
            problems.extend(problem.map(|problem| Problem { setting, value, problem }));
        };
        wrong("image", &spec.image, image::problem(&spec.image).map(str::to_owned));
        let policy = ["Always", "IfNotPresent", "Never"].contains(&&*spec.pull_policy);
        let say = || "write Always, IfNotPresent or Never".to_owned();
        wrong("pull-policy", &spec.pull_policy, (!policy).then(say));
        let folder = folder(&spec.socket);
        wrong("socket", &spec.socket, folder.err().map(str::to_owned));
        if let Some(timeout) = &spec.timeout {
            wrong("timeout", timeout, timeout_problem(timeout).map(str::to_owned));
        }
        let user = (1..=i64::from(i32::MAX)).contains(&spec.user);
        let say = || "write a number from 1 to 2147483647 (0 is root, which no gate may be)".into();
        wrong("user", &spec.user.to_string(), (!user).then(say));
        for (settings, of) in [
            (["cpu-request", "cpu-limit"], &spec.cpu),
            (["memory-request", "memory-limit"], &spec.memory),
        ] {
            let [request, limit] = settings;
            for (setting, value) in [(request, &of.request), (limit, &of.limit)] {
                let Some(value) = value else { continue };
                let valid = quantity::parse(value).is_some_and(|quantity| quantity > 0);
                let say = || "write a quantity above 0, as in 10m, 0.5, 16Mi or 1Gi".to_owned();
                wrong(setting, value, (!valid).then(say));
            }
            if let (Some(asked), Some(most)) = (&of.request, &of.limit) {
                let above = quantity::parse(asked) > quantity::parse(most);
                let say =
                    || format!("it is above the limit {most}: Kubernetes would refuse the pod");
                wrong(request, asked, (above && quantity::parse(most).is_some()).then(say));
            }
        }
        let folder = folder.unwrap_or_default().to_owned();
        if problems.is_empty() { Ok(Self { spec, folder }) } else { Err(Problems(problems)) }
    }

    /// The settings.
    pub fn spec(&self) -> &GateSpec {
        &self.spec
    }

    /// The folder of the socket, where the volume is mounted.
    pub fn folder(&self) -> &str {
        &self.folder
    }
}

/// The folder of a socket, where a volume can be mounted without hiding what the container needs.
fn folder(socket: &str) -> Result<&str, &'static str> {
    /// The longest path of a Unix socket.
    const LONGEST: usize = 107;
    /// Where Kubernetes mounts the ServiceAccount's token; a second mount there is refused.
    const TOKEN: &str = "run/secrets/kubernetes.io/serviceaccount";
    let Some(parts) = socket.strip_prefix('/') else { return Err("write an absolute path") };
    if parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("write it without empty parts, '.' and '..'");
    }
    if socket.len() > LONGEST {
        return Err("a Unix socket's path has at most 107 bytes");
    }
    if socket.contains(|c: char| c == ':' || c.is_control()) {
        return Err("no mount path may hold ':' or a control character");
    }
    match socket.rsplit_once('/') {
        None | Some(("", _)) => {
            Err("it lies in the root folder, and a volume mounted there would \
                                     hide /identity-ready: take one in a folder of its own")
        }
        Some((folder, _))
            if folder.strip_prefix("/var").unwrap_or(folder).trim_start_matches('/') == TOKEN =>
        {
            Err("Kubernetes mounts the ServiceAccount's token there: take another folder")
        }
        Some((folder, _)) => {
            let first = parts.split('/').next().unwrap_or_default();
            if matches!(first, "proc" | "sys" | "dev") || folder == keys::GATE_COMMAND {
                return Err("the container needs that folder itself: take another");
            }
            Ok(folder)
        }
    }
}

/// What is wrong with a duration, if anything is: numbers with a unit each, or 0.
fn timeout_problem(text: &str) -> Option<&'static str> {
    const FORM: &str = "write a duration, as in 30s, 1m30s or 500ms; 0 waits for ever";
    if text == "0" {
        return None;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Some((number, after)) = rest.split_at_checked(digits) else { return Some(FORM) };
        // Ten digits of hours are more than any clock holds.
        if number.is_empty() || number.len() > 9 {
            return Some(FORM);
        }
        let unit = ["ms", "s", "m", "h"].into_iter().find_map(|unit| after.strip_prefix(unit));
        let Some(next) = unit else { return Some(FORM) };
        rest = next;
    }
    text.is_empty().then_some(FORM)
}
