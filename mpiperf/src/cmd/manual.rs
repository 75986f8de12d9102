// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf man` and `mpiperf completions`: what a package installs beside the program, made from its command
//! line.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::{Error, Result};
use crate::report::output::say;

/// Arguments of `mpiperf completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Arguments of `mpiperf man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Of this subcommand
    subcommand: Option<String>,
}

/// Prints what a shell needs to complete the command line.
pub fn completions(args: &CompletionsArgs, command: &mut Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "mpiperf", &mut text);
    say(String::from_utf8_lossy(&text).trim_end())
}

/// Prints the page of the program, or of one of its subcommands.
pub fn man(args: &ManArgs, command: Command) -> Result<()> {
    say(page(args.subcommand.as_deref(), command)?.trim_end())
}

/// A page called as its file is: mpiperf-run(1).
fn page(subcommand: Option<&str>, mut command: Command) -> Result<String> {
    command.build();
    let page = match subcommand {
        None => command,
        Some(name) => command
            .find_subcommand(name)
            .map(|one| one.clone().name(format!("mpiperf-{name}").leak() as &str))
            .ok_or_else(|| Error::Usage(format!("man: there is no subcommand {name}; see mpiperf --help")))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| Error::Usage(format!("man: the page cannot be made: {error}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// scripts/extras.sh finds the subcommands in the program's own page.
    #[test]
    fn the_first_page_names_those_of_all_subcommands() {
        let cli = || crate::cmd::Cli::command();
        let first = page(None, cli()).unwrap();
        for subcommand in cli().get_subcommands() {
            let name = subcommand.get_name();
            let named = first.contains(&format!("\nmpiperf\\-{}(1)\n", name.replace('-', "\\-")));
            assert_eq!(named, !subcommand.is_hide_set(), "{name} in {first}");
            let text = page(Some(name), cli()).unwrap();
            assert!(text.contains(&format!(".TH mpiperf-{name} 1")), "{text}");
        }
        assert!(page(Some("no-such"), cli()).is_err());
    }
}
