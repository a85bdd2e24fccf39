//! Certificates, as `crypto/x509` makes them.

use std::net::IpAddr;

use bellwether_go::print;
use bellwether_go::value::Value;
use sha1::Digest as _;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};
use yasna::models::{GeneralizedTime, ObjectIdentifier, UTCTime};
use yasna::{DERWriter, Tag};

use super::Certificate;
use super::key::{self, Algorithm, Key};
use crate::call::{Call, Failure};
use crate::sprig::argument::{any, int, string};

type Done = Result<Value, Failure>;

/// What a certificate says.
struct Subject<'s> {
    name: &'s str,
    addresses: Vec<IpAddr>,
    hosts: Vec<String>,
    days: i64,
    is_authority: bool,
}

/// Who signs it.
struct Issuer<'i> {
    /// The name in DER, as its certificate has it.
    name: Vec<u8>,
    /// The identifier of its key, if its certificate has one.
    key_id: Option<Vec<u8>>,
    key: &'i Key,
}

/// A certificate that signs itself and others.
pub(super) fn authority(call: &mut Call<'_>, name: &str, days: i64, key: &Key) -> Done {
    let subject = Subject {
        name,
        addresses: Vec::new(),
        hosts: Vec::new(),
        days,
        is_authority: true,
    };
    make(call, &subject, key, &own(&subject, key))
}

/// A certificate that signs itself.
pub(super) fn self_signed(call: &mut Call<'_>, a: &[Value], key: &Key) -> Done {
    let name = string(a, 0);
    let subject = subject(&name, a)?;
    make(call, &subject, key, &own(&subject, key))
}

/// A certificate that an authority signs.
pub(super) fn signed(call: &mut Call<'_>, a: &[Value], key: &Key) -> Done {
    let authority = match any(a, 4) {
        Value::Object(object) => object.as_any().downcast_ref::<Certificate>(),
        _ => None,
    };
    let authority = authority.ok_or_else(|| Failure::from("unable to decode certificate"))?;
    let Some((_, der)) = key::unpem(&authority.certificate) else {
        return Err("unable to decode certificate".into());
    };
    let (_, certificate) = X509Certificate::from_der(&der)
        .map_err(|error| format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))?;
    let signer = key::parse(&authority.key)
        .map_err(|error| format!("error parsing private key: {error}"))?;
    let key_id =
        certificate
            .extensions()
            .iter()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            });
    let issuer = Issuer {
        name: certificate.subject().as_raw().to_vec(),
        key_id,
        key: &signer,
    };
    let name = string(a, 0);
    let subject = subject(&name, a)?;
    make(call, &subject, key, &issuer)
}

/// Whether a text is a certificate in PEM.
pub(super) fn check(pem: &[u8]) -> Result<(), Failure> {
    let Some((_, der)) = key::unpem(&String::from_utf8_lossy(pem)) else {
        return Err("unable to decode certificate".into());
    };
    match X509Certificate::from_der(&der) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("error parsing certificate: decodedCert.Bytes: {error}").into()),
    }
}

fn own<'k>(subject: &Subject<'_>, key: &'k Key) -> Issuer<'k> {
    Issuer {
        name: name_der(subject.name),
        key_id: None,
        key,
    }
}

fn subject<'s>(name: &'s str, a: &[Value]) -> Result<Subject<'s>, Failure> {
    let mut addresses = Vec::new();
    for item in any(a, 1).as_list().into_iter().flatten() {
        let Value::String(text) = item else {
            let shown = print::text(item);
            return Err(format!("error parsing ip: {shown} is not a string").into());
        };
        let address = text.to_str().parse();
        addresses.push(address.map_err(|_| format!("error parsing ip: {text}"))?);
    }
    let mut hosts = Vec::new();
    for item in any(a, 2).as_list().into_iter().flatten() {
        let Value::String(text) = item else {
            let shown = print::text(item);
            return Err(
                format!("error processing alternate dns name: {shown} is not a string").into(),
            );
        };
        hosts.push(text.to_str().into_owned());
    }
    Ok(Subject {
        name,
        addresses,
        hosts,
        days: int(a, 3),
        is_authority: false,
    })
}

fn make(call: &mut Call<'_>, subject: &Subject<'_>, key: &Key, issuer: &Issuer<'_>) -> Done {
    call.steps(100_000)?;
    let mut serial = [0; 16];
    (call.world().random)(&mut serial);
    // A serial number is positive.
    serial[0] &= 0x7f;
    let now = call.world().now;
    let body = body(subject, key, issuer, &serial, now.as_second())?;
    let (algorithm, signature) = issuer.key.sign(&body)?;
    let der = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&body);
            write_signature_algorithm(writer.next(), algorithm);
            writer
                .next()
                .write_bitvec_bytes(&signature, signature.len() * 8);
        });
    });
    let certificate = key::pem("CERTIFICATE", &der);
    let key = key.to_pem()?;
    call.bytes(certificate.len() + key.len())?;
    Ok(Value::object(Certificate { certificate, key }))
}

fn body(
    subject: &Subject<'_>,
    key: &Key,
    issuer: &Issuer<'_>,
    serial: &[u8],
    now: i64,
) -> Result<Vec<u8>, String> {
    let (algorithm, bits) = key.public()?;
    let (signs_with, _) = issuer.key.public()?;
    let key_id = sha1::Sha1::digest(&bits).to_vec();
    let until = now.saturating_add(subject.days.saturating_mul(86_400));
    let (from, until) = (Time::new(now)?, Time::new(until)?);
    Ok(yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            // Version 3.
            writer
                .next()
                .write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_bigint_bytes(serial, true);
            write_signature_algorithm(writer.next(), signs_with);
            writer.next().write_der(&issuer.name);
            writer.next().write_sequence(|writer| {
                from.write(writer.next());
                until.write(writer.next());
            });
            writer.next().write_der(&name_der(subject.name));
            writer.next().write_sequence(|writer| {
                write_key_algorithm(writer.next(), algorithm);
                writer.next().write_bitvec_bytes(&bits, bits.len() * 8);
            });
            writer.next().write_tagged(Tag::context(3), |writer| {
                write_extensions(writer, subject, &key_id, issuer);
            });
        });
    }))
}

enum Time {
    Utc(UTCTime),
    Generalized(GeneralizedTime),
}

impl Time {
    fn new(seconds: i64) -> Result<Self, String> {
        let time = time::OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|_| "error creating certificate: the time is out of range".to_owned())?;
        Ok(if (1950..2050).contains(&time.year()) {
            Self::Utc(UTCTime::from_datetime(time))
        } else {
            Self::Generalized(GeneralizedTime::from_datetime(time))
        })
    }

    fn write(&self, writer: DERWriter<'_>) {
        match self {
            Self::Utc(time) => writer.write_utctime(time),
            Self::Generalized(time) => writer.write_generalized_time(time),
        }
    }
}

fn oid(parts: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(parts)
}

fn name_der(name: &str) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence_of(|writer| {
            if name.is_empty() {
                return;
            }
            writer.next().write_set_of(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(&[2, 5, 4, 3]));
                    let is_printable = name.bytes().all(|byte| {
                        byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
                    });
                    if is_printable {
                        writer.next().write_printable_string(name);
                    } else {
                        writer.next().write_utf8_string(name);
                    }
                });
            });
        });
    })
}

fn write_signature_algorithm(writer: DERWriter<'_>, algorithm: Algorithm) {
    writer.write_sequence(|writer| match algorithm {
        Algorithm::Rsa => {
            writer
                .next()
                .write_oid(&oid(&[1, 2, 840, 113_549, 1, 1, 11]));
            writer.next().write_null();
        }
        Algorithm::Ecdsa => writer.next().write_oid(&oid(&[1, 2, 840, 10_045, 4, 3, 2])),
        Algorithm::Ed25519 => writer.next().write_oid(&oid(&[1, 3, 101, 112])),
    });
}

fn write_key_algorithm(writer: DERWriter<'_>, algorithm: Algorithm) {
    writer.write_sequence(|writer| match algorithm {
        Algorithm::Rsa => {
            writer
                .next()
                .write_oid(&oid(&[1, 2, 840, 113_549, 1, 1, 1]));
            writer.next().write_null();
        }
        Algorithm::Ecdsa => {
            writer.next().write_oid(&oid(&[1, 2, 840, 10_045, 2, 1]));
            writer.next().write_oid(&oid(&key::P256));
        }
        Algorithm::Ed25519 => writer.next().write_oid(&oid(&[1, 3, 101, 112])),
    });
}

fn write_extensions(
    writer: DERWriter<'_>,
    subject: &Subject<'_>,
    key_id: &[u8],
    issuer: &Issuer<'_>,
) {
    writer.write_sequence(|writer| {
        // Key usage: signatures, encryption of keys and, for an authority, certificates.
        let (usage, bits) = if subject.is_authority {
            (0b1010_0100, 6)
        } else {
            (0b1010_0000, 3)
        };
        extension(writer.next(), &[2, 5, 29, 15], true, |writer| {
            writer.write_bitvec_bytes(&[usage], bits);
        });
        extension(writer.next(), &[2, 5, 29, 37], false, |writer| {
            writer.write_sequence(|writer| {
                for purpose in [1, 2] {
                    writer
                        .next()
                        .write_oid(&oid(&[1, 3, 6, 1, 5, 5, 7, 3, purpose]));
                }
            });
        });
        extension(writer.next(), &[2, 5, 29, 19], true, |writer| {
            writer.write_sequence(|writer| {
                if subject.is_authority {
                    writer.next().write_bool(true);
                }
            });
        });
        if subject.is_authority {
            extension(writer.next(), &[2, 5, 29, 14], false, |writer| {
                writer.write_bytes(key_id);
            });
        }
        if let Some(issuer) = &issuer.key_id {
            extension(writer.next(), &[2, 5, 29, 35], false, |writer| {
                writer.write_sequence(|writer| {
                    writer
                        .next()
                        .write_tagged_implicit(Tag::context(0), |writer| {
                            writer.write_bytes(issuer);
                        });
                });
            });
        }
        if !subject.hosts.is_empty() || !subject.addresses.is_empty() {
            extension(writer.next(), &[2, 5, 29, 17], false, |writer| {
                names(writer, subject);
            });
        }
    });
}

/// Alternative names: hosts, then addresses.
fn names(writer: DERWriter<'_>, subject: &Subject<'_>) {
    writer.write_sequence(|writer| {
        for host in &subject.hosts {
            writer
                .next()
                .write_tagged_implicit(Tag::context(2), |writer| {
                    writer.write_bytes(host.as_bytes());
                });
        }
        for address in &subject.addresses {
            let bytes = match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            writer
                .next()
                .write_tagged_implicit(Tag::context(7), |writer| writer.write_bytes(&bytes));
        }
    });
}

fn extension(
    writer: DERWriter<'_>,
    id: &[u64],
    is_critical: bool,
    content: impl FnOnce(DERWriter<'_>),
) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&oid(id));
        if is_critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(&yasna::construct_der(content));
    });
}
