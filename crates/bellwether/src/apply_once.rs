//! The flag about ApplicationConfigurations that `hub` and `up` share.

use bellwether_application::configuration::apply_once::ApplyOnce;
use clap::Args;

/// How often objects of ApplicationConfigurations are applied.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApplyOnceArgs {
    /// When workloads and traits of ApplicationConfigurations are applied again: off whenever others change them, on
    /// only when the ApplicationConfiguration or the revision of a Component changes; force is like on, and does not create again
    /// what others deleted.
    #[arg(
        long = "apply-once-only",
        alias = "apply-one-only",
        value_name = "off|on|force",
        num_args = 0..=1,
        default_value_t = ApplyOnce::Off,
        default_missing_value = "on"
    )]
    pub(crate) mode: ApplyOnce,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        apply_once: ApplyOnceArgs,
    }

    #[track_caller]
    fn check(arguments: &[&str], expected: Option<ApplyOnce>) {
        let arguments = std::iter::once(&"bellwether").chain(arguments);
        let parsed = Command::try_parse_from(arguments).ok();
        assert_eq!(parsed.map(|command| command.apply_once.mode), expected);
    }

    #[test]
    fn both_spellings_of_the_flag_are_read() {
        check(&[], Some(ApplyOnce::Off));
        check(&["--apply-once-only"], Some(ApplyOnce::On));
        check(&["--apply-once-only=on"], Some(ApplyOnce::On));
        check(&["--apply-once-only", "force"], Some(ApplyOnce::Force));
        check(&["--apply-one-only=force"], Some(ApplyOnce::Force));
        check(&["--apply-once-only=false"], Some(ApplyOnce::Off));
        check(&["--apply-once-only=maybe"], None);
    }
}
