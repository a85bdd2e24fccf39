//! Sources of templates: what an address means.

use bellwether_api::workflow::TemplateSource;
use bellwether_git::Address;

/// Where files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A git repository at a branch, tag or commit.
    Git {
        address: Address,
        revision: Option<String>,
    },
    /// An archive at an HTTP server.
    Archive { url: String },
    /// An artifact in a registry.
    Oci {
        host: String,
        name: String,
        /// A tag, or a digest.
        reference: String,
    },
    /// A chart in a Helm repository.
    Repository {
        url: String,
        chart: String,
        range: String,
    },
}

impl Source {
    /// Reads where a template comes from.
    pub(crate) fn read(from: &TemplateSource, chart: &str) -> Result<Self, String> {
        let address = from.source.trim();
        let is_web = address.starts_with("https://") || address.starts_with("http://");
        let revision = Some(from.revision.clone()).filter(|revision| !revision.is_empty());
        if address.is_empty() {
            return Err("source is required: the address of a git repository, an archive or an OCI artifact".to_owned());
        }
        if let Some(rest) = address.strip_prefix("oci://") {
            return oci(rest, &from.revision, &from.digest);
        }
        if !chart.is_empty() {
            if !is_web {
                return Err(format!(
                    "{address:?} is not the address of a Helm repository: it has to begin with https://"
                ));
            }
            return Ok(Self::Repository {
                url: address.trim_end_matches('/').to_owned(),
                chart: chart.to_owned(),
                range: from.revision.clone(),
            });
        }
        let path = address.split(['?', '#']).next().unwrap_or_default();
        if is_web && [".tgz", ".tar.gz"].iter().any(|end| path.ends_with(end)) {
            let url = address.to_owned();
            return Ok(Self::Archive { url });
        }
        let address = address.strip_prefix("git+").unwrap_or(address);
        let address = address
            .parse()
            .map_err(|error: bellwether_git::Error| error.to_string())?;
        // A commit that is pinned is the revision.
        let revision = Some(from.digest.clone())
            .filter(|digest| !digest.is_empty())
            .or(revision);
        Ok(Self::Git { address, revision })
    }
}

fn oci(rest: &str, revision: &str, digest: &str) -> Result<Source, String> {
    let wrong = |why: &str| format!("\"oci://{rest}\" is not the address of an artifact: {why}");
    let (host, name) = rest
        .split_once('/')
        .ok_or_else(|| wrong("write oci://host/name"))?;
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) => (name, tag),
        None => (name, ""),
    };
    let allowed = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-._/".contains(letter)
    };
    if host.is_empty()
        || name.is_empty()
        || !name.chars().all(allowed)
        || name.split('/').any(|part| part.is_empty() || part == "..")
    {
        return Err(wrong(
            "the name has lower-case letters, digits, '-', '.', '_' and '/'",
        ));
    }
    let reference = [digest, revision, tag, "latest"]
        .into_iter()
        .find(|text| !text.is_empty());
    let reference = reference.unwrap_or_default();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._+:".contains(letter);
    if !reference.chars().all(allowed) || reference.len() > 128 {
        return Err(wrong("the tag has characters that no tag has"));
    }
    Ok(Source::Oci {
        host: host.to_owned(),
        name: name.to_owned(),
        // Tags of charts have an underscore where versions have a plus.
        reference: reference.replace('+', "_"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str, revision: &str, chart: &str) -> Result<Source, String> {
        let from = TemplateSource {
            source: source.to_owned(),
            revision: revision.to_owned(),
            ..TemplateSource::default()
        };
        Source::read(&from, chart)
    }

    #[test]
    fn addresses_say_what_a_source_is() {
        let git = |address: &str, revision: Option<&str>| {
            Ok(Source::Git {
                address: address.parse().unwrap(),
                revision: revision.map(str::to_owned),
            })
        };
        assert_eq!(
            read("https://git.example.org/a.git", "v1", ""),
            git("https://git.example.org/a.git", Some("v1"))
        );
        assert_eq!(
            read("git+https://example.org/a.tgz", "", ""),
            git("https://example.org/a.tgz", None)
        );
        assert_eq!(
            read("git@example.org:a.git", "", ""),
            git("git@example.org:a.git", None)
        );
        let url = "https://example.org/a-1.tar.gz?x=y".to_owned();
        assert_eq!(read(&url, "", ""), Ok(Source::Archive { url: url.clone() }));
        let artifact = |name: &str, reference: &str| {
            Ok(Source::Oci {
                host: "ghcr.io:443".to_owned(),
                name: name.to_owned(),
                reference: reference.to_owned(),
            })
        };
        assert_eq!(
            read("oci://ghcr.io:443/team/web", "1.0.0+5", ""),
            artifact("team/web", "1.0.0_5")
        );
        assert_eq!(
            read("oci://ghcr.io:443/web:2", "", ""),
            artifact("web", "2")
        );
        assert_eq!(
            read("oci://ghcr.io:443/web", "", ""),
            artifact("web", "latest")
        );
        let repository = Source::Repository {
            url: "https://charts.example.org".to_owned(),
            chart: "web".to_owned(),
            range: "^1".to_owned(),
        };
        assert_eq!(
            read("https://charts.example.org/", "^1", "web"),
            Ok(repository)
        );
    }

    #[test]
    fn a_pinned_commit_is_the_revision() {
        let from = TemplateSource {
            source: "https://example.org/a.git".to_owned(),
            revision: "main".to_owned(),
            digest: "ce013625030ba8dba906f756967f9e9ca394464a".to_owned(),
            ..TemplateSource::default()
        };
        let Ok(Source::Git { revision, .. }) = Source::read(&from, "") else {
            panic!("no repository");
        };
        assert_eq!(revision, Some(from.digest));
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for source in [
            "",
            "git-repo-url",
            "oci://ghcr.io",
            "oci://ghcr.io/../x",
            "oci://ghcr.io/A",
        ] {
            assert!(read(source, "", "").is_err(), "{source:?}");
        }
        assert!(read("git@example.org:a", "", "chart").is_err());
        assert!(read("oci://ghcr.io/web", "a b", "").is_err());
    }
}
