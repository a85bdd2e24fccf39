//! Client certificates, as bytes: whom they name, for which cluster, and until when.
//!
//! The subject holds the user as its common name and each group as an organization, as Kubernetes
//! has it. It is written here, because the library for the other certificates knows one organization
//! only. The cluster stands in a URI beside it.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, X509Name};
use yasna::models::{GeneralizedTime, ObjectIdentifier, UTCTime};
use yasna::{ASN1Result, DERWriter, DERWriterSeq, Tag};

use crate::access::{CREDENTIAL_ID, Identity};

const CLUSTER_URI: &str = "bellwether:cluster:";

const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
const ECDSA_WITH_SHA256: &[u64] = &[1, 2, 840, 10_045, 4, 3, 2];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const CLIENT_AUTHENTICATION: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

/// Everything that a client certificate says.
#[derive(Debug)]
pub(super) struct ClientCertificate<'a> {
    pub(super) serial: [u8; 16],
    pub(super) user: &'a str,
    pub(super) groups: Vec<&'a str>,
    pub(super) cluster: &'a str,
    pub(super) not_before: i64,
    pub(super) not_after: i64,
    /// The holder's public key, as a certificate holds it.
    pub(super) public_key: &'a [u8],
    /// The name of the authority, as its own certificate holds it.
    pub(super) issuer: &'a [u8],
    /// The id of the authority's key.
    pub(super) issuer_key: &'a [u8],
}

impl ClientCertificate<'_> {
    /// The part that is signed.
    pub(super) fn to_be_signed(&self) -> Vec<u8> {
        yasna::construct_der(|writer| {
            writer.write_sequence(|fields| {
                let version = Tag::context(0);
                fields.next().write_tagged(version, |it| it.write_u8(2));
                fields.next().write_bigint_bytes(&self.serial, true);
                write_algorithm(fields.next());
                fields.next().write_der(self.issuer);
                fields.next().write_sequence(|times| {
                    write_time(times.next(), self.not_before);
                    write_time(times.next(), self.not_after);
                });
                fields.next().write_sequence(|names| {
                    for group in &self.groups {
                        write_name(names.next(), ORGANIZATION, group);
                    }
                    write_name(names.next(), COMMON_NAME, self.user);
                });
                fields.next().write_der(self.public_key);
                fields.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|extensions| self.write_extensions(extensions));
                });
            });
        })
    }

    fn write_extensions(&self, extensions: &mut DERWriterSeq<'_>) {
        // Digital signature and key encipherment: bits 0 and 2.
        let usage = yasna::construct_der(|it| it.write_bitvec_bytes(&[0b1010_0000], 3));
        write_extension(extensions.next(), KEY_USAGE, true, &usage);
        let no_authority = yasna::construct_der(|it| it.write_sequence(|_| {}));
        write_extension(extensions.next(), BASIC_CONSTRAINTS, true, &no_authority);
        let purposes = yasna::construct_der(|it| {
            it.write_sequence(|it| write_oid(it.next(), CLIENT_AUTHENTICATION));
        });
        write_extension(extensions.next(), EXTENDED_KEY_USAGE, false, &purposes);
        let key = yasna::construct_der(|it| {
            it.write_sequence(|it| {
                let tag = Tag::context(0);
                it.next()
                    .write_tagged_implicit(tag, |it| it.write_bytes(self.issuer_key));
            });
        });
        write_extension(extensions.next(), AUTHORITY_KEY, false, &key);
        let uri = format!("{CLUSTER_URI}{}", self.cluster);
        let names = yasna::construct_der(|it| {
            it.write_sequence(|it| {
                let tag = Tag::context(6);
                it.next()
                    .write_tagged_implicit(tag, |it| it.write_ia5_string(&uri));
            });
        });
        write_extension(extensions.next(), ALTERNATIVE_NAMES, false, &names);
    }
}

/// A signed certificate.
pub(super) fn assemble(to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence(|fields| {
            fields.next().write_der(to_be_signed);
            write_algorithm(fields.next());
            fields
                .next()
                .write_bitvec_bytes(signature, signature.len() * 8);
        });
    })
}

fn write_oid(writer: DERWriter<'_>, oid: &[u64]) {
    writer.write_oid(&ObjectIdentifier::from_slice(oid));
}

fn write_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|it| write_oid(it.next(), ECDSA_WITH_SHA256));
}

fn write_name(writer: DERWriter<'_>, oid: &[u64], value: &str) {
    writer.write_set(|set| {
        set.next().write_sequence(|pair| {
            write_oid(pair.next(), oid);
            pair.next().write_utf8_string(value);
        });
    });
}

fn write_extension(writer: DERWriter<'_>, oid: &[u64], critical: bool, value: &[u8]) {
    writer.write_sequence(|fields| {
        write_oid(fields.next(), oid);
        if critical {
            fields.next().write_bool(true);
        }
        fields.next().write_bytes(value);
    });
}

/// Two digits for the year until 2049, four from then on, as the standard demands.
fn write_time(writer: DERWriter<'_>, seconds: i64) {
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    if (1950..2050).contains(&at.year()) {
        writer.write_utctime(&UTCTime::from_datetime(at));
    } else {
        writer.write_generalized_time(&GeneralizedTime::from_datetime(at));
    }
}

/// Whom a verified client certificate names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certified {
    /// Who holds it.
    pub identity: Identity,
    /// The only cluster in which that counts.
    pub cluster: String,
    /// When it ends.
    pub expires: Timestamp,
}

/// Whom a verified client certificate names; `None` if it is for nobody.
pub(crate) fn identify(certificate: &[u8]) -> Option<Certified> {
    let fingerprint = crate::discovery::hex(&Sha256::digest(certificate)).to_lowercase();
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let (user, groups) = subject(certificate.subject()).ok()?;
    let user = user?;
    let names = certificate.subject_alternative_name().ok()??;
    let mut clusters = names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => uri.strip_prefix(CLUSTER_URI),
            _ => None,
        });
    let cluster = clusters.next()?.to_owned();
    // Only the authority writes these, and it writes one.
    if clusters.next().is_some() {
        return None;
    }
    let expires = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?;
    let mut identity = Identity::authenticated(user, groups);
    let id = format!("X509SHA256={fingerprint}");
    identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Some(Certified {
        identity,
        cluster,
        expires,
    })
}

/// User and groups that a subject names; no user unless there is one common name.
pub(super) fn subject(name: &X509Name<'_>) -> Result<(Option<String>, Vec<String>), String> {
    let mut users = Vec::new();
    for value in name.iter_common_name() {
        let user = value
            .as_str()
            .map_err(|_| "the common name is not text that can be read")?;
        users.push(user.to_owned());
    }
    let mut groups = Vec::new();
    for value in name.iter_organization() {
        let group = value
            .as_str()
            .map_err(|_| "an organization is not text that can be read")?;
        groups.push(group.to_owned());
    }
    let user = match users.as_slice() {
        [user] if !user.is_empty() => Some(user.clone()),
        _ => None,
    };
    Ok((user, groups))
}

/// Whether bytes are one value in DER, as what is copied into a certificate has to be.
pub(super) fn is_der(bytes: &[u8]) -> bool {
    let read: ASN1Result<()> = yasna::parse_der(bytes, |reader| reader.read_der().map(drop));
    read.is_ok()
}
