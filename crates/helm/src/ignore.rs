//! `.helmignore`: files of a directory that are not part of the chart.

use crate::error::{Error, Result};
use crate::glob;

/// The rules of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    negated: bool,
    directories_only: bool,
    /// True if only the last part of a path is compared.
    base_only: bool,
}

impl Rules {
    /// Reads the text of a file, and adds the rule that always applies.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut rules = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.lines() {
            rules.add(line)?;
        }
        rules.add("templates/.?*")?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let rule = line.trim();
        if rule.is_empty() || rule.starts_with('#') {
            return Ok(());
        }
        if rule.contains("**") {
            return Err(Error::chart("double-star (**) syntax is not supported"));
        }
        if glob::matches(rule, "abc").is_none() {
            return Err(Error::chart(format!("syntax error in pattern {rule:?}")));
        }
        let (negated, rule) = match rule.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, rule),
        };
        let (directories_only, rule) = match rule.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, rule),
        };
        self.patterns.push(Pattern {
            text: rule.strip_prefix('/').unwrap_or(rule).to_owned(),
            negated,
            directories_only,
            base_only: !rule.contains('/'),
        });
        Ok(())
    }

    /// True if a file, or a directory that it is in, is ignored.
    pub(crate) fn ignores(&self, path: &str) -> bool {
        let directories = path.match_indices('/').map(|(at, _)| &path[..at]);
        directories
            .map(|directory| (directory, true))
            .chain([(path, false)])
            .any(|(path, is_directory)| self.ignores_entry(path, is_directory))
    }

    fn ignores_entry(&self, path: &str, is_directory: bool) -> bool {
        for pattern in &self.patterns {
            let compared = if pattern.base_only {
                path.rsplit('/').next().unwrap_or(path)
            } else {
                path
            };
            let matches = glob::matches(&pattern.text, compared) == Some(true);
            let is_excluded = pattern.directories_only && !is_directory;
            // Anything that a negated rule does not match is ignored: Helm has it so.
            if pattern.negated {
                if is_excluded || !matches {
                    return true;
                }
            } else if matches && !is_excluded {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_ignore_files_and_directories() {
        let rules = Rules::parse("# c\n*.bak\nsecret/\n/root.txt\ntemplates/skip.yaml\n").unwrap();
        for (path, ignored) in [
            ("a.bak", true),
            ("sub/x.bak", true),
            ("secret/s.txt", true),
            ("root.txt", true),
            ("sub/root.txt", false),
            ("templates/skip.yaml", true),
            ("templates/.hidden", true),
            ("keep.txt", false),
        ] {
            assert_eq!(rules.ignores(path), ignored, "{path}");
        }
        assert!(Rules::parse("doc/**").is_err());
    }
}
