//! What a client says to a server, and what comes back: version 2 of the protocol for reading, with version 0 for servers
//! that speak only that; version 0 for writing, since there is no other.

use crate::object::Oid;
use crate::packet::{self, Packet, Packets};
use crate::{Error, Result};

const AGENT: &str = "agent=bellwether\n";

/// What a server can do, and what it has, as far as it says so at the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advertisement {
    /// True if the server speaks version 2: references are asked for.
    pub is_version_2: bool,
    /// What the server can do: names, or `name=value`.
    pub capabilities: Vec<String>,
    /// Names and references; none in version 2.
    pub references: Vec<(String, Oid)>,
}

impl Advertisement {
    /// Reads what a server says at the beginning of a conversation.
    pub fn read(message: &[u8]) -> Result<Self> {
        let mut packets = Packets::new(message);
        let mut lines = packets.lines()?;
        if lines
            .first()
            .is_some_and(|line| line.starts_with("# service="))
        {
            lines = packets.lines()?;
        }
        let mut advertisement = Self::default();
        let Some(first) = lines.first() else {
            return Err(Error::protocol("the server says nothing of the repository"));
        };
        if let Some(problem) = first.strip_prefix("ERR ") {
            return Err(Error::NotFound(problem.to_owned()));
        }
        if *first == "version 2" {
            advertisement.is_version_2 = true;
            advertisement.capabilities = lines[1..].iter().map(ToString::to_string).collect();
        } else {
            advertisement.read_references(&lines)?;
        }
        let format = advertisement.value("object-format").unwrap_or("sha1");
        if format != "sha1" {
            return Err(Error::protocol(format!(
                "the repository names objects by {format}; only sha1 is supported"
            )));
        }
        Ok(advertisement)
    }

    fn read_references(&mut self, lines: &[&str]) -> Result<()> {
        for line in lines.iter().filter(|line| **line != "version 1") {
            if line.starts_with("shallow ") {
                continue;
            }
            let (line, capabilities) = line.split_once('\0').unwrap_or((line, ""));
            let capabilities = capabilities.split(' ').filter(|name| !name.is_empty());
            self.capabilities.extend(capabilities.map(str::to_owned));
            let (oid, name) = line
                .split_once(' ')
                .ok_or_else(|| Error::protocol(format!("{line:?} is not a reference")))?;
            let oid: Oid = oid.parse()?;
            if !oid.is_zero() {
                self.references.push((name.to_owned(), oid));
            }
        }
        Ok(())
    }

    /// The value of a capability.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find_map(|capability| {
            let value = capability.strip_prefix(name)?;
            if value.is_empty() {
                Some("")
            } else {
                value.strip_prefix('=')
            }
        })
    }

    /// True if the server can leave objects out.
    pub fn has_filter(&self) -> bool {
        if self.is_version_2 {
            let fetch = self.value("fetch").unwrap_or_default();
            fetch.split(' ').any(|feature| feature == "filter")
        } else {
            self.value("filter").is_some()
        }
    }

    /// The object that a reference names.
    pub fn reference(&self, name: &str) -> Option<Oid> {
        let mut references = self.references.iter();
        references
            .find(|(known, _)| known == name)
            .map(|(_, oid)| *oid)
    }
}

/// Asks for the references that begin with any of these names.
pub fn list_references(prefixes: &[&str]) -> Vec<u8> {
    let mut message = Vec::new();
    packet::line(&mut message, "command=ls-refs\n");
    packet::line(&mut message, AGENT);
    packet::delimiter(&mut message);
    packet::line(&mut message, "peel\n");
    for prefix in prefixes {
        packet::line(&mut message, &format!("ref-prefix {prefix}\n"));
    }
    packet::flush(&mut message);
    message
}

/// Reads the answer to [`list_references`]; of a tag the commit that it names, if it is said.
pub fn read_references(message: &[u8]) -> Result<Vec<(String, Oid)>> {
    let mut references = Vec::new();
    for line in Packets::new(message).lines()? {
        if let Some(problem) = line.strip_prefix("ERR ") {
            return Err(Error::NotFound(problem.to_owned()));
        }
        let mut words = line.split(' ');
        let (Some(oid), Some(name)) = (words.next(), words.next()) else {
            return Err(Error::protocol(format!("{line:?} is not a reference")));
        };
        let peeled = words.find_map(|word| word.strip_prefix("peeled:"));
        if oid != "unborn" {
            references.push((name.to_owned(), peeled.unwrap_or(oid).parse()?));
        }
    }
    Ok(references)
}

/// Objects that a client asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Want {
    /// Commits or blobs.
    pub objects: Vec<Oid>,
    /// A commit that the client has, without its parents.
    pub have: Option<Oid>,
    /// True if contents of files are left out.
    pub without_blobs: bool,
    /// True if parents of commits are left out.
    pub is_shallow: bool,
}

/// Asks for objects in version 2.
pub fn fetch(want: &Want) -> Vec<u8> {
    let mut message = Vec::new();
    packet::line(&mut message, "command=fetch\n");
    packet::line(&mut message, AGENT);
    packet::delimiter(&mut message);
    packet::line(&mut message, "no-progress\n");
    packet::line(&mut message, "ofs-delta\n");
    if let Some(have) = want.have {
        packet::line(&mut message, &format!("shallow {have}\n"));
    }
    if want.is_shallow {
        packet::line(&mut message, "deepen 1\n");
    }
    if want.without_blobs {
        packet::line(&mut message, "filter blob:none\n");
    }
    for oid in &want.objects {
        packet::line(&mut message, &format!("want {oid}\n"));
    }
    if let Some(have) = want.have {
        packet::line(&mut message, &format!("have {have}\n"));
    }
    packet::line(&mut message, "done\n");
    packet::flush(&mut message);
    message
}

/// Asks for objects in version 0. Contents of files cannot be left out, and nothing is said of what the client has.
pub fn fetch_version_0(want: &Want) -> Vec<u8> {
    let mut message = Vec::new();
    for (index, oid) in want.objects.iter().enumerate() {
        let capabilities = if index == 0 {
            format!(
                " side-band-64k ofs-delta shallow no-progress {}",
                AGENT.trim_end()
            )
        } else {
            String::new()
        };
        packet::line(&mut message, &format!("want {oid}{capabilities}\n"));
    }
    if want.is_shallow {
        packet::line(&mut message, "deepen 1\n");
    }
    packet::flush(&mut message);
    packet::line(&mut message, "done\n");
    message
}

/// The pack within the answer to [`fetch`] or [`fetch_version_0`].
pub fn read_pack(message: &[u8]) -> Result<Vec<u8>> {
    let mut packets = Packets::new(message);
    let mut pack = Vec::new();
    let mut is_pack = false;
    while let Some(packet) = packets.take()? {
        let Packet::Line(payload) = packet else {
            if is_pack {
                break;
            }
            continue;
        };
        if is_pack {
            side_band(payload, &mut pack)?;
            continue;
        }
        match packet.text() {
            Some("packfile" | "NAK") => is_pack = true,
            Some(line) => {
                if let Some(problem) = line.strip_prefix("ERR ") {
                    return Err(Error::NotFound(problem.to_owned()));
                }
            }
            None => return Err(Error::protocol("a line is not text")),
        }
    }
    if is_pack {
        Ok(pack)
    } else {
        Err(Error::protocol("the answer has no pack"))
    }
}

/// Takes in a packet that belongs to the pack, to messages for people, or to an error.
fn side_band(payload: &[u8], pack: &mut Vec<u8>) -> Result<()> {
    match payload.split_first() {
        Some((1, data)) => pack.extend_from_slice(data),
        Some((3, problem)) => {
            let problem = String::from_utf8_lossy(problem).trim().to_owned();
            return Err(Error::Protocol(problem));
        }
        _ => {}
    }
    Ok(())
}

/// A branch that moves from one commit to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update<'a> {
    /// The full name, such as `refs/heads/main`.
    pub reference: &'a str,
    /// Where it is; zero if it does not exist.
    pub old: Oid,
    /// Where it shall be.
    pub new: Oid,
}

/// Asks for a branch to be moved, with the objects that the server lacks.
pub fn push(update: Update<'_>, pack: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(pack.len() + 256);
    let Update {
        reference,
        old,
        new,
    } = update;
    let capabilities = format!("report-status {}", AGENT.trim_end());
    packet::line(
        &mut message,
        &format!("{old} {new} {reference}\0{capabilities}"),
    );
    packet::flush(&mut message);
    message.extend_from_slice(pack);
    message
}

/// Reads the answer to [`push`]: nothing, or why the server refused.
pub fn read_report(message: &[u8]) -> Result<std::result::Result<(), String>> {
    let lines = Packets::new(message).lines()?;
    let Some(unpacked) = lines.first().and_then(|line| line.strip_prefix("unpack ")) else {
        return Err(Error::protocol("the server does not report on the push"));
    };
    if unpacked != "ok" {
        return Ok(Err(unpacked.to_owned()));
    }
    for line in &lines[1..] {
        if let Some(refusal) = line.strip_prefix("ng ") {
            let reason = refusal
                .split_once(' ')
                .map_or(refusal, |(_, reason)| reason);
            return Ok(Err(reason.to_owned()));
        }
        if line.starts_with("ok ") {
            return Ok(Ok(()));
        }
    }
    Err(Error::protocol("the server does not report on the branch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "ce013625030ba8dba906f756967f9e9ca394464a";

    fn message(lines: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        for line in lines {
            if line.is_empty() {
                packet::flush(&mut message);
            } else {
                packet::line(&mut message, line);
            }
        }
        message
    }

    #[test]
    fn both_versions_of_advertisements_are_read() {
        let first = format!("{OID} refs/heads/main\0report-status filter object-format=sha1\n");
        let read = Advertisement::read(&message(&["# service=git-upload-pack\n", "", &first, ""]));
        let read = read.unwrap();
        assert_eq!(
            read.reference("refs/heads/main"),
            Some(OID.parse().unwrap())
        );
        assert!(read.has_filter() && !read.is_version_2);
        let second = [
            "version 2\n",
            "ls-refs=unborn\n",
            "fetch=shallow filter\n",
            "",
        ];
        let read = Advertisement::read(&message(&second)).unwrap();
        assert!(read.has_filter() && read.is_version_2);
    }

    #[test]
    fn an_empty_repository_has_no_references() {
        let zero = Oid::ZERO;
        let line = format!("{zero} capabilities^{{}}\0report-status\n");
        let read = Advertisement::read(&message(&[&line, ""])).unwrap();
        assert_eq!(read.references, []);
        assert_eq!(read.capabilities, ["report-status"]);
    }

    #[test]
    fn other_hashes_are_refused() {
        let lines = ["version 2\n", "object-format=sha256\n", ""];
        let error = Advertisement::read(&message(&lines)).unwrap_err();
        assert!(error.to_string().contains("only sha1"), "{error}");
    }

    #[test]
    fn tags_are_followed_to_their_commit() {
        let other = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let line = format!("{other} refs/tags/v1 peeled:{OID}\n");
        let read = read_references(&message(&[&line, ""])).unwrap();
        assert_eq!(read, [("refs/tags/v1".to_owned(), OID.parse().unwrap())]);
    }

    #[test]
    fn reports_say_what_was_refused() {
        let report = |lines: &[&str]| read_report(&message(lines)).unwrap();
        assert_eq!(report(&["unpack ok\n", "ok refs/heads/main\n", ""]), Ok(()));
        assert_eq!(
            report(&["unpack ok\n", "ng refs/heads/main fetch first\n", ""]),
            Err("fetch first".to_owned())
        );
        assert_eq!(
            report(&["unpack index-pack failed\n", ""]),
            Err("index-pack failed".to_owned())
        );
        assert!(read_report(b"").is_err());
    }
}
