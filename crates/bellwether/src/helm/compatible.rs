//! Flags of Helm that scripts pass to `helm template` although they do not change what it prints, and
//! those that need a network, a cluster or another program.

use anyhow::bail;
use clap::Args;

/// Flags beside those that have an effect.
#[derive(Debug, Args)]
pub(super) struct CompatibleArgs {
    #[command(flatten)]
    install: InstallArgs,
    #[command(flatten)]
    refused: RefusedArgs,
}

/// Flags that matter to installations only.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted for scripts, without an effect on what is printed")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct InstallArgs {
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    atomic: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    create_namespace: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    description: Option<String>,
    /// Chooses among versions of a repository
    #[arg(long, hide_short_help = true)]
    devel: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    disable_openapi_validation: bool,
    /// Only `client` and `none`: no cluster is asked
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "client", hide_short_help = true)]
    dry_run: Option<String>,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    force: bool,
    /// Notes are never printed
    #[arg(long, hide_short_help = true)]
    hide_notes: bool,
    /// Labels of the release
    #[arg(short, long, hide_short_help = true)]
    labels: Vec<String>,
    /// Notes are never printed
    #[arg(long, hide_short_help = true)]
    render_subchart_notes: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Definitions are left out unless --include-crds is given
    #[arg(long, hide_short_help = true)]
    skip_crds: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    take_ownership: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    timeout: Option<String>,
    /// Chooses among versions of a repository
    #[arg(long, hide_short_help = true)]
    version: Option<String>,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    wait: bool,
    /// Matters to installations
    #[arg(long, hide_short_help = true)]
    wait_for_jobs: bool,
}

/// Flags that cannot be honoured.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct RefusedArgs {
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    repo: Option<String>,
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true)]
    verify: bool,
}

impl CompatibleArgs {
    /// Fails if a flag asks for what is never done; the error says what to do instead.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let refused = &self.refused;
        if let Some(mode @ ("server" | "true")) = self.install.dry_run.as_deref() {
            bail!("--dry-run={mode}: no cluster is asked; use --dry-run=client");
        }
        let problems = [
            (
                refused.dependency_update,
                "--dependency-update: charts are not fetched; run `helm dependency update` before",
            ),
            (
                refused.repo.is_some(),
                "--repo: charts are not fetched; run `helm pull` and name its directory or archive",
            ),
            (
                refused.enable_dns,
                "--enable-dns: names are not looked up; pass addresses as values",
            ),
            (
                refused.post_renderer.is_some(),
                "--post-renderer: no program is run; pipe the output into it",
            ),
            (
                refused.validate,
                "--validate: no cluster is asked; pipe the output into `bellwether apply --dry-run=server -f -`",
            ),
            (
                refused.verify,
                "--verify: signatures are not checked; run `helm verify` before",
            ),
        ];
        match problems.iter().find(|(is_given, _)| *is_given) {
            Some((_, problem)) => bail!("{problem}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        compatible: CompatibleArgs,
    }

    #[track_caller]
    fn check(flags: &[&str], expected: Option<&str>) {
        let command = Command::try_parse_from([&["helm"], flags].concat()).unwrap();
        let found = command.compatible.check().err();
        let found = found.map(|error| error.to_string());
        assert_eq!(
            found.as_deref().and_then(|text| text.split(':').next()),
            expected,
            "{flags:?}"
        );
    }

    #[test]
    fn flags_of_installations_are_accepted() {
        check(
            &[
                "--wait",
                "--timeout",
                "5m",
                "--atomic",
                "--create-namespace",
            ],
            None,
        );
        check(&["--dry-run", "--version", "1.2.3", "-l", "a=b"], None);
        check(&["--dry-run=client", "--skip-crds"], None);
    }

    #[test]
    fn what_is_never_done_is_refused() {
        check(&["--dry-run=server"], Some("--dry-run=server"));
        check(&["--repo", "https://charts.example"], Some("--repo"));
        check(&["--validate"], Some("--validate"));
        check(&["--post-renderer", "./x"], Some("--post-renderer"));
    }
}
