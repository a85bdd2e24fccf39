//! `bellwether completion`: scripts with which shells complete commands and flags.

use std::io::Write as _;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

/// Print a script with which a shell completes commands and flags.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  source <(bellwether completion bash)\n  bellwether completion zsh > \"${fpath[1]}/_bellwether\"\n  bellwether completion fish > ~/.config/fish/completions/bellwether.fish"
)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: ShellArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellArg {
    /// GNU Bash.
    Bash,
    /// Z shell.
    Zsh,
    /// Fish.
    Fish,
}

pub(crate) fn run(arguments: &CompletionArgs) -> anyhow::Result<()> {
    let shell = match arguments.shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    let mut command = <crate::cli::Arguments>::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "bellwether", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
