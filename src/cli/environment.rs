//! The command line with the environment behind it, where an empty variable counts as not set.

use clap::{Command, Parser};

/// Reads the command line and the environment; ends the process where they are wrong, as the
/// parser does. A manifest can name a variable and leave it empty: that is no value.
pub fn parse<P: Parser>() -> P {
    let command =
        without_empty(P::command(), &|name| std::env::var_os(name).is_some_and(|v| v.is_empty()));
    P::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

/// The command, in whose options and those of its subcommands no variable stands that is empty.
fn without_empty(command: Command, is_empty: &dyn Fn(&std::ffi::OsStr) -> bool) -> Command {
    let command = command.mut_args(|option| {
        if option.get_env().is_some_and(is_empty) { option.env(None::<&str>) } else { option }
    });
    let names: Vec<String> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |inner| without_empty(inner, is_empty))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use clap::Arg;

    use super::*;

    #[test]
    fn an_empty_variable_is_no_value_in_any_depth() {
        let option = |name: &'static str| Arg::new(name).long(name).env(name);
        let inner = Command::new("inner").arg(option("C"));
        let all = Command::new("all").arg(option("A")).arg(option("B")).subcommand(inner);
        let all = without_empty(all, &|name| name == "A" || name == "C");
        let env = |command: &Command, name: &str| {
            let option = command.get_arguments().find(|option| option.get_id() == name).unwrap();
            option.get_env().map(|env| env.to_string_lossy().into_owned())
        };
        assert_eq!((env(&all, "A"), env(&all, "B")), (None, Some("B".to_owned())));
        assert_eq!(env(all.get_subcommands().next().unwrap(), "C"), None);
    }
}
