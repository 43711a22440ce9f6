//! The check of pods that serve on a Unix socket: what could never work is denied, with all that
//! is wrong named at once, so that it is put right in one go.

use std::fmt;

use serde_json::Value;

use crate::admission::keys;
use crate::admission::pod::{Pod, name_of};
use crate::model::quoted;

/// The longest name of a socket's file, in bytes: the path of a Unix socket holds 107, and
/// `/run/aether/uds/<36 characters of the pod's uid>/` is its beginning on the node.
pub const LONGEST_FILE: usize = 107 - "/run/aether/uds//".len() - 36;

/// Why a pod is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The pod, or the workload that makes it: `Pod <namespace>/<name>`.
    pub object: String,
    /// All that is wrong: one at least.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind it is, for metrics.
    pub kind: FaultKind,
    /// The field.
    pub field: String,
    /// Its value and what is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// More than one volume of the carrier's driver.
    ManyVolumes,
    /// Such a volume, and no `fsGroup`.
    NoFsGroup,
    /// The annotation is empty.
    EmptyAnnotation,
    /// The annotation names a volume that the pod lacks.
    UnknownVolume,
    /// The annotation names a volume of another kind.
    WrongVolume,
    /// The annotation's file is none.
    WrongFile,
    /// The file's name is too long.
    LongFile,
}

impl FaultKind {
    /// The word for it in metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ManyVolumes => "many_volumes",
            Self::NoFsGroup => "no_fs_group",
            Self::EmptyAnnotation => "empty_annotation",
            Self::UnknownVolume => "unknown_volume",
            Self::WrongVolume => "wrong_volume",
            Self::WrongFile => "wrong_file",
            Self::LongFile => "long_file",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot serve on a Unix socket: ", self.object)?;
        for (index, Fault { field, problem, fix, .. }) in self.faults.iter().enumerate() {
            let between = if index == 0 { "" } else { ". " };
            write!(f, "{between}{field}: {problem}; {fix}")?;
        }
        Ok(())
    }
}

/// Checks a pod.
pub fn check(pod: &Pod<'_>, namespace: &str) -> Option<Denial> {
    let mut faults = Vec::new();
    let carriers = pod.volumes.iter().filter(|volume| is_carrier(volume));
    let names: Vec<_> = carriers.map(|volume| quoted(name_of(volume))).collect();
    if names.len() > 1 {
        faults.push(Fault {
            kind: FaultKind::ManyVolumes,
            field: "spec.volumes".to_owned(),
            problem: format!(
                "{} of them are {} volumes ({}), and a pod has one",
                names.len(),
                keys::CARRIER_DRIVER,
                names.join(", ")
            ),
            fix: "keep one of them and mount it wherever it is needed".to_owned(),
        });
    }
    if let (Some(first), false) = (names.first(), pod.fs_group) {
        faults.push(Fault {
            kind: FaultKind::NoFsGroup,
            field: "spec.securityContext.fsGroup".to_owned(),
            problem: format!(
                "it is not set, so that no application could make its socket in the {} volume {first}",
                keys::CARRIER_DRIVER
            ),
            fix: "set it to a group of the application's, as in fsGroup: 1000".to_owned(),
        });
    }
    if let Some(value) = pod.annotation(keys::UDS_SOCKET) {
        faults.extend(socket(pod, value));
    }
    let object = format!("Pod {namespace}/{}", pod.called());
    (!faults.is_empty()).then_some(Denial { object, faults })
}

/// What is wrong with the annotation.
fn socket(pod: &Pod<'_>, value: &str) -> Vec<Fault> {
    const FORM: &str = "write <volume>/<file>, as in sockets/app.sock, or remove the annotation";
    let fault = |kind, problem, fix: &str| Fault {
        kind,
        field: format!("metadata.annotations[{}]", keys::UDS_SOCKET),
        problem,
        fix: fix.to_owned(),
    };
    if value.is_empty() {
        return vec![fault(FaultKind::EmptyAnnotation, "\"\" names no socket".to_owned(), FORM)];
    }
    let (name, file) = value.split_once('/').unwrap_or((value, ""));
    let value = quoted(value);
    let mut faults = Vec::new();
    let carrier = format!("a volume with csi: {{driver: {}}}", keys::CARRIER_DRIVER);
    match pod.volumes.iter().find(|volume| name_of(volume) == name) {
        Some(volume) if is_carrier(volume) => {}
        Some(volume) => faults.push(fault(
            FaultKind::WrongVolume,
            format!(
                "{value} names the volume {}, which is {}, and no {} volume",
                quoted(name),
                source(volume),
                keys::CARRIER_DRIVER
            ),
            &format!("make it {carrier}, or name another"),
        )),
        None => faults.push(fault(
            FaultKind::UnknownVolume,
            format!("{value} names the volume {}, which the pod does not declare", quoted(name)),
            &format!("declare it in spec.volumes as {carrier}, or name one that is"),
        )),
    }
    if let Some(problem) = file_problem(file) {
        let problem = format!("{value} names the file {}, which {problem}", quoted(file));
        faults.push(fault(FaultKind::WrongFile, problem, FORM));
    } else if file.len() > LONGEST_FILE {
        faults.push(fault(
            FaultKind::LongFile,
            format!(
                "{value} names a file of {} bytes, and a Unix socket's path leaves it {LONGEST_FILE}",
                file.len()
            ),
            &format!("give it a name of at most {LONGEST_FILE} bytes"),
        ));
    }
    faults
}

fn file_problem(file: &str) -> Option<&'static str> {
    match file {
        "" => Some("is empty"),
        "." | ".." => Some("is a folder"),
        file if file.contains('/') => Some("holds '/', and the socket lies in the volume itself"),
        file if file.contains('\0') => Some("holds a NUL byte"),
        _ => None,
    }
}

fn is_carrier(volume: &Value) -> bool {
    let driver = volume.get("csi").and_then(|csi| csi.get("driver"));
    driver.and_then(Value::as_str) == Some(keys::CARRIER_DRIVER)
}

/// What a volume is, in words.
fn source(volume: &Value) -> String {
    let driver = volume.get("csi").and_then(|csi| csi.get("driver")).and_then(Value::as_str);
    if let Some(driver) = driver {
        return format!("of the CSI driver {}", quoted(driver));
    }
    let mut keys = volume.as_object().into_iter().flatten();
    match keys.find(|(key, value)| *key != "name" && !value.is_null()) {
        Some((key, _)) if key == "emptyDir" => {
            "an emptyDir (which carried sockets in earlier versions)".to_owned()
        }
        Some((key, _)) => format!("of the kind {}", quoted(key)),
        // A volume without a source is an emptyDir, by Kubernetes' own default.
        None => "an emptyDir (which carried sockets in earlier versions)".to_owned(),
    }
}
