//! Lists of known hosts, as OpenSSH writes them: which keys a server may have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The port that lists leave out.
const USUAL_PORT: u16 = 22;
/// What lines begin with whose host is hashed.
const HASHED: &str = "|1|";
/// The most lines that are read of a list.
const MAX_LINES: usize = 10_000;
/// Marks a key that must not be accepted.
const REVOKED: &str = "@revoked";

/// Keys that a list has for one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostKeys {
    /// Keys of the host: their algorithms, and themselves.
    pub known: Vec<(String, Vec<u8>)>,
    /// Keys that must not be accepted.
    revoked: Vec<Vec<u8>>,
}

/// What a list says of the key of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the key of the host.
    Known,
    /// The list has other keys for the host.
    Different,
    /// The list has no key for the host.
    Unknown,
    /// The key was revoked.
    Revoked,
}

impl HostKeys {
    /// Finds the keys of a host. Lines that cannot be read are left out, and so are certificate authorities.
    pub fn find(list: &str, host: &str, port: u16) -> Self {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let name = if port == USUAL_PORT {
            host
        } else {
            format!("[{host}]:{port}")
        };
        let mut found = Self::default();
        for line in list.lines().take(MAX_LINES) {
            let mut words = line.split_whitespace().peekable();
            let marker = words.next_if(|word| word.starts_with('@'));
            let (Some(hosts), Some(algorithm), Some(key)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if hosts.starts_with('#') || !matches_host(hosts, &name) {
                continue;
            }
            let Ok(key) = STANDARD.decode(key) else {
                continue;
            };
            match marker {
                None => found.known.push((algorithm.to_owned(), key)),
                Some(REVOKED) => found.revoked.push(key),
                Some(_) => {}
            }
        }
        found
    }

    /// Judges the key of a server.
    pub fn judge(&self, key: &[u8]) -> Verdict {
        if self.revoked.iter().any(|revoked| revoked == key) {
            Verdict::Revoked
        } else if self.known.iter().any(|(_, known)| known == key) {
            Verdict::Known
        } else if self.known.is_empty() {
            Verdict::Unknown
        } else {
            Verdict::Different
        }
    }
}

/// True if the first field of a line is about a host.
fn matches_host(patterns: &str, name: &str) -> bool {
    if let Some(hashed) = patterns.strip_prefix(HASHED) {
        return matches_hash(hashed, name).unwrap_or(false);
    }
    let mut is_found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(excluded) if matches_pattern(excluded, name) => return false,
            Some(_) => {}
            None => is_found |= matches_pattern(pattern, name),
        }
    }
    is_found
}

/// Compares the hash of a name with `SALT|HASH`.
fn matches_hash(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (STANDARD.decode(salt).ok()?, STANDARD.decode(hash).ok()?);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, name.as_bytes(), &hash).is_ok())
}

/// Matches a pattern with `*` and `?`, in time that grows with the product of both lengths at most.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase().into_bytes();
    let name = name.as_bytes();
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((after, from)) = star else {
                    return false;
                };
                star = Some((after, from + 1));
                at = after + 1;
                place = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
# a comment
git.example.org,192.0.2.1 ssh-ed25519 QUFB comment
[git.example.org]:2222 ecdsa-sha2-nistp256 QkJC
*.example.net,!bad.example.net ssh-rsa Q0ND
@revoked git.example.org ssh-ed25519 RERE
@cert-authority *.example.org ssh-ed25519 RUVF
broken line
";

    #[track_caller]
    fn check(host: &str, port: u16, key: &[u8], expected: Verdict) {
        assert_eq!(
            HostKeys::find(LIST, host, port).judge(key),
            expected,
            "{host}"
        );
    }

    #[test]
    fn a_key_is_known_for_its_host_and_port_only() {
        check("git.example.org", 22, b"AAA", Verdict::Known);
        check("GIT.example.org", 22, b"AAA", Verdict::Known);
        check("192.0.2.1", 22, b"AAA", Verdict::Known);
        check("git.example.org", 22, b"BBB", Verdict::Different);
        check("git.example.org", 2222, b"BBB", Verdict::Known);
        check("git.example.org", 2223, b"BBB", Verdict::Unknown);
        check("other.example.org", 22, b"AAA", Verdict::Unknown);
    }

    #[test]
    fn patterns_exceptions_and_revoked_keys_count() {
        check("a.example.net", 22, b"CCC", Verdict::Known);
        check("bad.example.net", 22, b"CCC", Verdict::Unknown);
        check("git.example.org", 22, b"DDD", Verdict::Revoked);
        check("git.example.org", 22, b"EEE", Verdict::Different);
        assert!(matches_pattern("a*b*c", "aXbYbZc"));
        assert!(!matches_pattern("a*b*c", "aXbYbZ"));
        assert!(matches_pattern("g?t", "git") && !matches_pattern("g?t", "gt"));
    }

    #[test]
    fn hashed_hosts_are_found() {
        let salt = [7_u8; 20];
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
        let hash = hmac::sign(&key, b"[git.example.org]:2222");
        let list = format!(
            "|1|{}|{} ssh-ed25519 QUFB\n",
            STANDARD.encode(salt),
            STANDARD.encode(hash.as_ref())
        );
        let find = |port| HostKeys::find(&list, "git.example.org", port).judge(b"AAA");
        assert_eq!(find(2222), Verdict::Known);
        assert_eq!(find(22), Verdict::Unknown);
    }
}
