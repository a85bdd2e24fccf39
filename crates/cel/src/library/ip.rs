//! IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{Value, quoted};

pub(super) fn declare(functions: &mut Functions) {
    functions.add("string_to_ip", "ip(string) -> net.IP", |a| {
        parse(text(a, 0)?).map(Value::Ip)
    });
    functions.add("ip_family", "net.IP::family() -> int", |a| {
        Ok(Value::Int(if address(a)?.is_ipv4() { 4 } else { 6 }))
    });
    functions.add("ip_is_canonical", "ip.isCanonical(string) -> bool", |a| {
        let text = text(a, 0)?;
        Ok(Value::Bool(parse(text)?.to_string() == text))
    });
    functions.add(
        "ip_is_unspecified",
        "net.IP::isUnspecified() -> bool",
        |a| Ok(Value::Bool(address(a)?.is_unspecified())),
    );
    functions.add("ip_is_loopback", "net.IP::isLoopback() -> bool", |a| {
        Ok(Value::Bool(address(a)?.is_loopback()))
    });
    functions.add(
        "ip_is_link_local_multicast",
        "net.IP::isLinkLocalMulticast() -> bool",
        |a| Ok(Value::Bool(is_link_local_multicast(address(a)?))),
    );
    functions.add(
        "ip_is_link_local_unicast",
        "net.IP::isLinkLocalUnicast() -> bool",
        |a| Ok(Value::Bool(is_link_local_unicast(address(a)?))),
    );
    functions.add(
        "ip_is_global_unicast",
        "net.IP::isGlobalUnicast() -> bool",
        |a| Ok(Value::Bool(is_global_unicast(address(a)?))),
    );
    functions.add("is_ip", "isIP(string) -> bool", |a| {
        Ok(Value::Bool(parse(text(a, 0)?).is_ok()))
    });
    functions.add("ip_to_string", "string(net.IP) -> string", |a| {
        Ok(Value::text(address(a)?.to_string()))
    });
}

fn address(arguments: &[Value<'_>]) -> Result<IpAddr, EvalError> {
    match arguments.first() {
        Some(Value::Ip(address)) => Ok(*address),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Reads an address; zones and IPv4 in IPv6 are refused.
pub(super) fn parse(text: &str) -> Result<IpAddr, EvalError> {
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(EvalError::failed(format!(
            "IP address {} with zone value is not allowed",
            quoted(text)
        )));
    }
    let address = parse_address(text).map_err(|reason| {
        EvalError::failed(format!(
            "IP Address {} parse error during conversion from string: ParseAddr({}): {reason}",
            quoted(text),
            quoted(text)
        ))
    })?;
    if is_mapped(address) {
        return Err(EvalError::failed(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        )));
    }
    Ok(address)
}

pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Reads an address; the reason of a failure is worded as in Go.
pub(super) fn parse_address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => Err(version_4_error(text)),
        Some(b':') => Err(version_6_error(text)),
        Some(_) => Err("missing IPv6 address".to_owned()),
        None => Err("unable to parse IP".to_owned()),
    }
}

fn version_4_error(text: &str) -> String {
    let (mut value, mut digits, mut fields) = (0_u32, 0, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return "IPv4 field has octet with leading zero".to_owned();
                }
                value = value.saturating_mul(10) + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return "IPv4 field has value >255".to_owned();
                }
            }
            b'.' => {
                if digits == 0 || index + 1 == text.len() {
                    return format!(
                        "IPv4 field must have at least one digit (at {})",
                        quoted(&text[index..])
                    );
                }
                if fields == 3 {
                    return "IPv4 address too long".to_owned();
                }
                (value, digits) = (0, 0);
                fields += 1;
            }
            _ => return format!("unexpected character (at {})", quoted(&text[index..])),
        }
    }
    "IPv4 address too short".to_owned()
}

/// The first thing wrong with an IPv6 address, found field by field.
fn version_6_error(text: &str) -> String {
    let mut rest = text;
    let (mut ellipsis, mut fields) = (false, 0);
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = true;
        rest = after;
    }
    while fields < 8 && !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            return format!(
                "each colon-separated field must have at least one digit (at {})",
                quoted(rest)
            );
        }
        if digits > 4 {
            return format!(
                "each group must have 4 or fewer digits (at {})",
                quoted(rest)
            );
        }
        fields += 1;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        if !rest.starts_with(':') {
            return format!("unexpected character, want colon (at {})", quoted(rest));
        }
        if rest == ":" {
            return format!(
                "colon must be followed by more characters (at {})",
                quoted(rest)
            );
        }
        rest = &rest[1..];
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis {
                return format!("multiple :: in address (at {})", quoted(rest));
            }
            ellipsis = true;
            rest = after;
        }
    }
    if !rest.is_empty() {
        return format!("trailing garbage after address (at {})", quoted(rest));
    }
    "address string too short".to_owned()
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    address != IpAddr::V4(Ipv4Addr::BROADCAST)
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}
