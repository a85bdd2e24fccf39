//! Addresses of repositories, in the forms that git takes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Error, Result};

/// Where a repository is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// At an HTTP server.
    Http {
        /// True for HTTPS.
        is_secure: bool,
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The path, with a leading slash and none at its end.
        path: String,
    },
    /// At an SSH server.
    Ssh {
        /// Whom to log in as.
        user: String,
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The path as the server understands it.
        path: String,
    },
    /// On this machine.
    File(PathBuf),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.chars().any(char::is_control) {
            return Err(Error::Address(
                "the address of the repository has control characters".to_owned(),
            ));
        }
        let invalid = |why: &str| {
            Error::Address(format!(
                "{text:?} is not the address of a repository: {why}"
            ))
        };
        if let Some((scheme, rest)) = text.split_once("://") {
            return match scheme {
                "http" | "https" => http(scheme == "https", rest).map_err(invalid),
                "ssh" | "git+ssh" | "ssh+git" => ssh(rest).map_err(invalid),
                "file" if rest.starts_with('/') => Ok(Self::File(PathBuf::from(rest))),
                "file" => Err(invalid(
                    "a file has an absolute path, such as file:///srv/git/apps.git",
                )),
                _ => Err(invalid("the scheme is none of https, http, ssh and file")),
            };
        }
        if text.starts_with('/') {
            return Ok(Self::File(PathBuf::from(text)));
        }
        match text.split_once(':') {
            Some((host, path)) if !host.contains('/') && !path.is_empty() => {
                let (user, host) = host.split_once('@').unwrap_or(("git", host));
                Ok(Self::Ssh {
                    user: user.to_owned(),
                    host: host_of(host).map_err(invalid)?,
                    port: 22,
                    path: path.to_owned(),
                })
            }
            _ => Err(invalid(
                "write https://host/path, ssh://user@host/path or user@host:path",
            )),
        }
    }
}

fn host_of(host: &str) -> std::result::Result<String, &'static str> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter);
    if host.is_empty() || host.starts_with('-') || !host.chars().all(allowed) {
        return Err("the host is missing, or has characters that no host has");
    }
    Ok(host.to_owned())
}

/// Takes a port off a host.
fn host_and_port(text: &str, port: u16) -> std::result::Result<(String, u16), &'static str> {
    match text.rsplit_once(':') {
        Some((host, digits)) if !digits.contains(']') => {
            let port = digits.parse().map_err(|_| "the port is not a number")?;
            Ok((host_of(host)?, port))
        }
        _ => Ok((host_of(text)?, port)),
    }
}

fn http(is_secure: bool, rest: &str) -> std::result::Result<Address, &'static str> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err("credentials belong in a Secret, not in the address");
    }
    if path.contains(['?', '#']) {
        return Err("an address has neither a query nor a fragment");
    }
    let (host, port) = host_and_port(authority, if is_secure { 443 } else { 80 })?;
    Ok(Address::Http {
        is_secure,
        host,
        port,
        path: format!("/{}", path.trim_end_matches('/')),
    })
}

fn ssh(rest: &str) -> std::result::Result<Address, &'static str> {
    let (authority, path) = rest.split_once('/').ok_or("the path is missing")?;
    let (user, host) = authority.rsplit_once('@').unwrap_or(("git", authority));
    if user.contains(':') {
        return Err("credentials belong in a Secret, not in the address");
    }
    let (host, port) = host_and_port(host, 22)?;
    Ok(Address::Ssh {
        user: user.to_owned(),
        host,
        port,
        path: format!("/{path}"),
    })
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http {
                is_secure,
                host,
                port,
                path,
            } => {
                let (scheme, usual) = if *is_secure {
                    ("https", 443)
                } else {
                    ("http", 80)
                };
                write!(formatter, "{scheme}://{host}")?;
                if *port != usual {
                    write!(formatter, ":{port}")?;
                }
                write!(formatter, "{path}")
            }
            Self::Ssh {
                user,
                host,
                port,
                path,
            } => {
                write!(
                    formatter,
                    "ssh://{user}@{host}:{port}/{}",
                    path.trim_start_matches('/')
                )
            }
            Self::File(path) => write!(formatter, "file://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        check(
            "https://git.example.org/team/apps.git",
            "https://git.example.org/team/apps.git",
        );
        check(
            "http://127.0.0.1:8080/apps.git/",
            "http://127.0.0.1:8080/apps.git",
        );
        check("https://[::1]:8443/a", "https://[::1]:8443/a");
        check(
            "ssh://me@git.example.org:2222/srv/a.git",
            "ssh://me@git.example.org:2222/srv/a.git",
        );
        check(
            "git@git.example.org:team/apps.git",
            "ssh://git@git.example.org:22/team/apps.git",
        );
        check("file:///srv/git/apps.git", "file:///srv/git/apps.git");
        check("/srv/git/apps.git", "file:///srv/git/apps.git");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        for (text, why) in [
            ("git-repo-url", "write https://"),
            ("https://user:secret@host/a", "belong in a Secret"),
            ("ftp://host/a", "the scheme"),
            ("https://-oProxy/a", "characters"),
            ("ssh://host", "the path is missing"),
            ("file://relative", "absolute path"),
            ("https://host:port/a", "not a number"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
