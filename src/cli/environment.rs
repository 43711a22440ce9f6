//! The environment: an empty variable counts as one that is not set, for every option.
//!
//! Charts and shells leave variables empty that nobody filled in; to take `AETHER_DNS_UPSTREAM=` for
//! an answer would refuse what nobody asked for. On the command line an empty value stays a value.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, CommandFactory, FromArgMatches};

/// Parses the command line and the environment of this process; ends it, with a word, where they
/// are wrong or ask for help.
pub fn parse<P: CommandFactory + FromArgMatches>() -> P {
    let mut command = without_empty_variables(P::command());
    let matches = command.get_matches_mut();
    P::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// The command, whose options ask no variable of this process that is empty.
pub fn without_empty_variables(command: Command) -> Command {
    without_empty(command, &|name| std::env::var_os(name))
}

/// The command, and those below it, whose options ask no variable that is empty.
fn without_empty(command: Command, variable: &dyn Fn(&OsStr) -> Option<OsString>) -> Command {
    let set = |option: Arg| {
        let empty = option.get_env().and_then(variable).is_some_and(|value| value.is_empty());
        if empty { option.env(None) } else { option }
    };
    command.mut_args(set).mut_subcommands(|subcommand| without_empty(subcommand, variable))
}

/// What Kubernetes mounts into a pod with the token of its ServiceAccount.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of the pod that this process runs in; `None` outside of one.
pub fn pod_namespace() -> Option<String> {
    std::env::var_os("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty())?;
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::cli::Cli;

    /// Every option of every command that asks this environment.
    fn asked(variable: &dyn Fn(&OsStr) -> Option<OsString>) -> Vec<String> {
        let mut all = Vec::new();
        let mut commands = vec![without_empty(Cli::command(), variable)];
        while let Some(command) = commands.pop() {
            let asking = command.get_arguments().filter(|option| option.get_env().is_some());
            all.extend(asking.map(|o| format!("{} --{}", command.get_name(), o.get_id())));
            commands.extend(command.get_subcommands().cloned());
        }
        all
    }

    #[test]
    fn no_option_asks_a_variable_that_is_empty_and_every_other_is_asked() {
        let unset = asked(&|_| None);
        assert!(unset.len() > 25, "{unset:?}");
        assert_eq!(asked(&|_| Some("0".into())), unset);
        assert_eq!(asked(&|_| Some("".into())), Vec::<String>::new());
        let one = asked(&|name| (name == "AETHER_DNS_UPSTREAM").then(OsString::new));
        let mut lost: Vec<_> = unset.iter().filter(|option| !one.contains(option)).collect();
        lost.sort();
        let expected =
            ["check", "explain", "render", "serve"].map(|name| format!("{name} --dns_upstream"));
        assert_eq!(lost, expected.iter().collect::<Vec<_>>());
    }
}
