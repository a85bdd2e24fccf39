//! Networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;

use super::{ip, text};
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{Value, quoted};

/// An address and how many of its bits name the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Reads `address/bits`.
    pub fn parse(text: &str) -> Result<Cidr, EvalError> {
        const PREFIX: &str = "network address parse error during conversion from string: ";
        let cidr = parse(text).map_err(|reason| {
            EvalError::failed(format!(
                "{PREFIX}{PREFIX}netip.ParsePrefix({}): {reason}",
                quoted(text)
            ))
        })?;
        if ip::is_mapped(cidr.address) {
            return Err(EvalError::failed(format!(
                "{PREFIX}IPv4-mapped IPv6 address {} is not allowed",
                quoted(text)
            )));
        }
        Ok(cidr)
    }

    /// The network's own address: host bits cleared.
    fn masked(self) -> Cidr {
        Cidr {
            address: mask(self.address, self.bits),
            ..self
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(address, self.bits) == self.masked().address
    }

    /// Bytes of the network part, which is what sizes and costs are counted in.
    pub(crate) fn size(self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

fn parse(text: &str) -> Result<Cidr, String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let address = ip::parse_address(address)
        .map_err(|reason| format!("ParseAddr({}): {reason}", quoted(address)))?;
    let bad = || format!("bad bits after slash: {}", quoted(bits));
    let leading_zero = bits.len() > 1 && bits.starts_with('0');
    if leading_zero || bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let limit = if address.is_ipv4() { 32 } else { 128 };
    match bits.parse::<u8>() {
        Ok(bits) if bits <= limit => Ok(Cidr { address, bits }),
        _ => Err("prefix length out of range".to_owned()),
    }
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add("string_to_cidr", "cidr(string) -> net.CIDR", |a| {
        Cidr::parse(text(a, 0)?).map(Value::Cidr)
    });
    functions.add(
        "cidr_contains_ip_string",
        "net.CIDR::containsIP(string) -> bool",
        // The peer loses the reason why the text is no address.
        |a| match ip::parse(text(a, 1)?) {
            Ok(address) => Ok(Value::Bool(network(a, 0)?.contains(address))),
            Err(_) => Err(EvalError::no_such_overload()),
        },
    );
    functions.add(
        "cidr_contains_ip_ip",
        "net.CIDR::containsIP(net.IP) -> bool",
        |a| match a {
            [Value::Cidr(network), Value::Ip(address)] => {
                Ok(Value::Bool(network.contains(*address)))
            }
            _ => Err(EvalError::no_such_overload()),
        },
    );
    functions.add(
        "cidr_contains_cidr_string",
        "net.CIDR::containsCIDR(string) -> bool",
        |a| {
            Ok(Value::Bool(includes(
                network(a, 0)?,
                Cidr::parse(text(a, 1)?)?,
            )))
        },
    );
    functions.add(
        "cidr_contains_cidr",
        "net.CIDR::containsCIDR(net.CIDR) -> bool",
        |a| Ok(Value::Bool(includes(network(a, 0)?, network(a, 1)?))),
    );
    functions.add("cidr_ip", "net.CIDR::ip() -> net.IP", |a| {
        Ok(Value::Ip(network(a, 0)?.address))
    });
    functions.add(
        "cidr_prefix_length",
        "net.CIDR::prefixLength() -> int",
        |a| Ok(Value::Int(i64::from(network(a, 0)?.bits))),
    );
    functions.add("cidr_masked", "net.CIDR::masked() -> net.CIDR", |a| {
        Ok(Value::Cidr(network(a, 0)?.masked()))
    });
    functions.add("is_cidr", "isCIDR(string) -> bool", |a| {
        Ok(Value::Bool(Cidr::parse(text(a, 0)?).is_ok()))
    });
    functions.add("cidr_to_string", "string(net.CIDR) -> string", |a| {
        Ok(Value::text(network(a, 0)?.to_string()))
    });
}

fn network(arguments: &[Value<'_>], index: usize) -> Result<Cidr, EvalError> {
    match arguments.get(index) {
        Some(Value::Cidr(network)) => Ok(*network),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Whether every address of `inner` is one of `outer`.
fn includes(outer: Cidr, inner: Cidr) -> bool {
    outer.bits <= inner.bits && outer.contains(inner.address)
}
