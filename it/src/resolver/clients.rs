//! What applications resolve names with: the resolvers of several languages, with a pod's `resolv.conf`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::net::Netns;
use crate::places;
use crate::process::output;

/// Whose resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// The GNU C library's, by `getent`.
    Glibc,
    /// That of musl, which Alpine has, in a static program.
    Musl,
    /// That of Go, without cgo.
    Go,
    /// That of Java's JNDI, which does not ask the C library.
    Java,
    /// c-ares, by way of Node.js.
    CAres,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Glibc, Self::Musl, Self::Go, Self::Java, Self::CAres];
}

/// Programs that resolve a name with each of them, built once.
#[derive(Debug)]
pub struct Clients {
    folder: TempDir,
}

const MUSL: &str = include_str!("../../clients/resolve.c");
const GO: &str = include_str!("../../clients/resolve.go");
const JAVA: &str = include_str!("../../clients/Resolve.java");
const NODE: &str = include_str!("../../clients/resolve.js");

impl Clients {
    /// Builds what is to be built, with `resolv.conf` for all of them.
    pub fn build(resolv_conf: &str) -> Result<Self> {
        let folder = places::folder()?;
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("resolve.c", MUSL),
            ("resolve.go", GO),
            ("Resolve.java", JAVA),
            ("resolve.js", NODE),
            ("resolv.conf", resolv_conf),
        ] {
            std::fs::write(at(name), text)?;
        }
        output(
            Command::new("musl-gcc")
                .args(["-static", "-O1", "-o"])
                .args([at("musl"), at("resolve.c")]),
        )?;
        output(
            Command::new("go")
                .args(["build", "-o"])
                .args([at("go"), at("resolve.go")])
                .current_dir(folder.path())
                .envs([("CGO_ENABLED", "0"), ("GOFLAGS", "-mod=mod"), ("GOTOOLCHAIN", "local")]),
        )?;
        output(Command::new("javac").arg("-d").args([folder.path(), &at("Resolve.java")]))?;
        Ok(Self { folder })
    }

    /// A command in this namespace that sees our `resolv.conf` in the place of the machine's.
    pub fn command(&self, netns: &Netns, program: &Path) -> Command {
        let mut command = netns.command("unshare");
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script]);
        command.arg(self.folder.path().join("resolv.conf")).arg(program);
        command
    }

    /// The addresses of a name, sorted and each once; an error where there are none.
    pub fn resolve(&self, netns: &Netns, language: Language, name: &str) -> Result<Vec<String>> {
        let at = |file: &str| self.folder.path().join(file);
        let (program, args): (PathBuf, Vec<PathBuf>) = match language {
            Language::Glibc => ("getent".into(), vec!["ahosts".into()]),
            Language::Musl => (at("musl"), vec![]),
            Language::Go => (at("go"), vec![]),
            Language::Java => {
                ("java".into(), vec!["-cp".into(), self.folder.path().into(), "Resolve".into()])
            }
            Language::CAres => ("node".into(), vec![at("resolve.js")]),
        };
        let mut command = self.command(netns, &program);
        let said = output(command.args(args).arg(name)).with_context(|| format!("{language:?}"))?;
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let mut found: Vec<String> = said.lines().filter_map(first).collect();
        found.sort();
        found.dedup();
        Ok(found)
    }
}
