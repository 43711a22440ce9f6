//! `aether inject`: what the webhook would do to the pods of a file, done to the file.

mod document;
mod order;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::options::Mesh;
use super::webhook::Injection;
use crate::admission::{Settings, workload};
use crate::index::MANAGED;
use crate::run::{self, Form};

use document::{Document, Done};
use values::{Labels, Namespace};

/// Print the pods and workloads of a file as the webhook would leave them, or the denial.
///
/// Pods, and the pod templates of Deployments, StatefulSets, DaemonSets, ReplicaSets,
/// ReplicationControllers, Jobs and CronJobs; lists, and several documents. All other objects pass
/// as they are. A document that changes loses its comments.
///
/// Exit status: 0 done; 3 the webhook would deny a pod (nothing is printed); 1 the file cannot be
/// read.
#[derive(Debug, Clone, Args)]
pub struct Inject {
    /// The file, YAML or JSON; `-` is the standard input.
    #[arg(short = 'f', long = "file", env = "AETHER_FILE", value_name = "FILE")]
    file: PathBuf,

    /// Print the operations alone, as JSON Patches of the documents.
    #[arg(long)]
    diff: bool,

    /// The namespace of objects that name none.
    #[arg(long, env = "AETHER_NAMESPACE", value_name = "NAMESPACE", default_value = "default")]
    namespace: Namespace,

    /// The labels of the objects' namespaces, as in aether.io/managed=true. Without this option,
    /// those of the Namespaces in the file count.
    #[arg(long, env = "AETHER_NAMESPACE_LABELS", value_name = "LABELS")]
    namespace_labels: Option<Labels>,

    #[command(flatten)]
    mesh: Mesh,

    #[command(flatten)]
    injection: Injection,
}

/// The exit status where the webhook would deny a pod.
const DENIED: u8 = 3;

impl Inject {
    /// Reads, injects and prints.
    pub fn run(&self) -> Result<ExitCode> {
        let settings = self.injection.settings(self.mesh.settings(Vec::new())?)?;
        let text = self.read()?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        let denied = self.inject(&text, &settings, &mut out, &mut io::stderr().lock())?;
        out.flush()?;
        Ok(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
    }

    fn read(&self) -> Result<String> {
        let name = self.file.display();
        let mut bytes = Vec::new();
        if self.file.as_os_str() == "-" {
            io::stdin().lock().read_to_end(&mut bytes).context("the standard input")?;
        } else {
            bytes = std::fs::read(&self.file).with_context(|| format!("{name} cannot be read"))?;
        }
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| anyhow::anyhow!("{name} is no UTF-8 text: save it as such"))?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Injects a text into `out`, and says on `log` what its reader should know; whether a pod was
    /// denied, in which case there is no output.
    fn inject(
        &self,
        text: &str,
        settings: &Settings,
        out: &mut impl Write,
        log: &mut impl Write,
    ) -> Result<bool> {
        let form = Form::of(text);
        let mut documents = Vec::new();
        let raw = run::documents(text, form);
        for raw in &raw {
            match Document::read(raw) {
                Ok(document) => documents.push(document),
                Err(error) => {
                    let name = self.file.display();
                    bail!("{name}: document {} cannot be read: {error}", raw.number)
                }
            }
        }
        let namespaces = self.namespaces(&documents);
        let of = |name: &str| {
            let managed = namespaces.get(name).or(namespaces.get("")).copied().unwrap_or(false);
            workload::Namespace { name: name.to_owned(), managed }
        };
        let mut all = Vec::new();
        let mut denied = false;
        for document in &documents {
            let done = document.inject(&self.namespace.0, &of, settings).with_context(|| {
                format!("{}: document {}", self.file.display(), document.number())
            })?;
            for warning in &done.warnings {
                writeln!(log, "warning: {warning}")?;
            }
            for denial in &done.denials {
                writeln!(log, "denied: {denial}")?;
            }
            denied |= !done.denials.is_empty();
            all.push(done);
        }
        if !denied {
            self.write(text, form, documents.iter().zip(&all), out)?;
        }
        Ok(denied)
    }

    /// Which namespaces are managed; under the empty name, what counts for all.
    fn namespaces(&self, documents: &[Document<'_>]) -> BTreeMap<String, bool> {
        if let Some(labels) = &self.namespace_labels {
            let managed = labels.0.get(MANAGED).is_some_and(|value| value == "true");
            return BTreeMap::from([(String::new(), managed)]);
        }
        documents.iter().flat_map(Document::namespaces).collect()
    }

    fn write<'a>(
        &self,
        text: &str,
        form: Form,
        done: impl Iterator<Item = (&'a Document<'a>, &'a Done)> + Clone,
        out: &mut impl Write,
    ) -> Result<()> {
        if self.diff {
            let several = done.clone().count() > 1;
            for (document, done) in done {
                if several && form == Form::Yaml {
                    writeln!(out, "---\n# document {}: {}", document.number(), done.what)?;
                }
                serde_json::to_writer_pretty(&mut *out, &done.patch)?;
                writeln!(out)?;
            }
            return Ok(());
        }
        // What does not change comes out to the letter.
        if done.clone().all(|(_, done)| done.patch.0.is_empty()) {
            return Ok(out.write_all(text.as_bytes())?);
        }
        for (index, (document, done)) in done.enumerate() {
            let written = document.write(&done.patch, form)?;
            if form == Form::Yaml && index > 0 && !written.starts_with("---") {
                writeln!(out, "---")?;
            }
            out.write_all(written.as_bytes())?;
            if !written.ends_with('\n') {
                writeln!(out)?;
            }
        }
        Ok(())
    }
}
