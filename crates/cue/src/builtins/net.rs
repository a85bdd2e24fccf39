//! Package `net`: addresses, host names and the escaping of URLs.

use std::net::{IpAddr, Ipv6Addr};

use bellwether_go::url::{self, Url};

use super::argument::{Outcome, any, string, string_list, text_result, valid};
use super::{ANY, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "net",
    functions: &[
        function("SplitHostPort", &[STRING], Kind::LIST, split_host_port),
        function("JoinHostPort", &[ANY, ANY], Kind::STRING, join_host_port),
        function("FQDN", &[STRING], Kind::BOOL, fqdn),
        function("ParseIP", &[STRING], Kind::LIST, parse_ip),
        function("IPv4", &[ANY], Kind::BOOL, |_, a| check(a, IpAddr::is_ipv4)),
        function("IPv6", &[ANY], Kind::BOOL, |_, a| check(a, IpAddr::is_ipv6)),
        function("IP", &[ANY], Kind::BOOL, |_, a| check(a, |_| true)),
        function("IPCIDR", &[ANY], Kind::BOOL, is_cidr),
        function("LoopbackIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, |ip| plain(ip).is_loopback())
        }),
        function("MulticastIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, |ip| plain(ip).is_multicast())
        }),
        function("InterfaceLocalMulticastIP", &[ANY], Kind::BOOL, |_, a| {
            check(
                a,
                |ip| matches!(ip, IpAddr::V6(v6) if v6.segments()[0] & 0xff0f == 0xff01),
            )
        }),
        function("LinkLocalMulticastIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, is_link_local_multicast)
        }),
        function("LinkLocalUnicastIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, is_link_local_unicast)
        }),
        function("GlobalUnicastIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, is_global_unicast)
        }),
        function("UnspecifiedIP", &[ANY], Kind::BOOL, |_, a| {
            check(a, IpAddr::is_unspecified)
        }),
        function("ToIP4", &[ANY], Kind::LIST, to_ip4),
        function("ToIP16", &[ANY], Kind::LIST, to_ip16),
        function("IPString", &[ANY], Kind::STRING, ip_string),
        function("PathEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(url::path_escape(string(a, 0)?))
        }),
        function("PathUnescape", &[STRING], Kind::STRING, |_, a| {
            unescaped(url::path_unescape(string(a, 0)?))
        }),
        function("QueryEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(url::query_escape(string(a, 0)?.as_bytes()))
        }),
        function("QueryUnescape", &[STRING], Kind::STRING, |_, a| {
            unescaped(url::query_unescape(string(a, 0)?))
        }),
        function("URL", &[STRING], Kind::BOOL, |_, a| {
            valid(read_url(string(a, 0)?).map(drop))
        }),
        function("AbsURL", &[STRING], Kind::BOOL, absolute_url),
    ],
    source: "IPv4len: 4\nIPv6len: 16\n",
};

fn unescaped(result: Result<String, String>) -> Outcome {
    text_result(result.map_err(Failure::Error)?)
}

/// Reads an address given as text, as UTF-8 bytes or as a list of 4 or 16 numbers.
fn address(value: &Value) -> Option<IpAddr> {
    match value {
        Value::String(text) => parse_address(text),
        Value::Bytes(bytes) => parse_address(std::str::from_utf8(bytes).ok()?),
        Value::List(items) => {
            let byte = |item: &Value| match item {
                Value::Number(number) => u8::try_from(number.to_i64()?).ok(),
                _ => None,
            };
            let bytes: Vec<u8> = items.iter().map(byte).collect::<Option<_>>()?;
            match bytes.len() {
                4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
                16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Text of an address; an IPv6 zone is accepted and dropped.
fn parse_address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => {
            address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// An IPv4 address in IPv6 clothes as what it is.
fn plain(ip: &IpAddr) -> IpAddr {
    ip.to_canonical()
}

fn check(arguments: &[Value], test: impl Fn(&IpAddr) -> bool) -> Outcome {
    Ok(Value::Bool(
        address(any(arguments, 0)?).is_some_and(|ip| test(&ip)),
    ))
}

fn is_link_local_unicast(ip: &IpAddr) -> bool {
    match plain(ip) {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match plain(ip) {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(ip: &IpAddr) -> bool {
    let canonical = plain(ip);
    let broadcast = matches!(canonical, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast
        || canonical.is_unspecified()
        || canonical.is_loopback()
        || canonical.is_multicast()
        || is_link_local_unicast(ip))
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn octet_list(bytes: &[u8]) -> Value {
    Value::list(
        bytes
            .iter()
            .map(|byte| Value::Number(i64::from(*byte).into())),
    )
}

fn parse_ip(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    match parse_address(text) {
        Some(ip) => Ok(octet_list(&octets(ip))),
        None => Err(Failure::error(format!("invalid IP address {text:?}"))),
    }
}

fn argument(host: &mut dyn Host, arguments: &[Value]) -> Result<IpAddr, Failure> {
    let value = any(arguments, 0)?;
    address(value).ok_or_else(|| Failure::error(format!("invalid IP {}", host.show(value))))
}

fn to_ip4(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    match argument(host, arguments)? {
        ip @ IpAddr::V4(_) => Ok(octet_list(&octets(ip))),
        ip @ IpAddr::V6(_) => Err(Failure::error(format!("cannot convert \"{ip}\" to IPv4"))),
    }
}

fn to_ip16(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let wide = match argument(host, arguments)? {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    Ok(octet_list(&wide.octets()))
}

fn ip_string(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(argument(host, arguments)?.to_string())
}

fn is_cidr(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = match any(arguments, 0)? {
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        // Other kinds pass: the reference asks nothing of them.
        _ => return Ok(Value::Bool(true)),
    };
    let failure = |reason: &str| Failure::error(format!("netip.ParsePrefix({text:?}): {reason}"));
    let Some((prefix, bits)) = text.rsplit_once('/') else {
        return Err(failure("no '/'"));
    };
    let Ok(ip) = prefix.parse::<IpAddr>() else {
        return Err(failure("unable to parse IP"));
    };
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let canonical = bits == "0" || !bits.starts_with('0');
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    match bits.parse::<u32>() {
        Ok(bits) if digits && canonical && bits <= width => Ok(Value::Bool(true)),
        Ok(_) if digits && canonical => Err(failure("prefix length out of range")),
        _ => Err(failure(&format!("bad bits after slash: {bits:?}"))),
    }
}

fn split_host_port(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    let failure = |reason: &str| Failure::error(format!("address {text}: {reason}"));
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(failure("missing port in address"));
    };
    let host = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((host, "")) => host,
            Some(_) => return Err(failure("missing port in address")),
            None => return Err(failure("missing ']' in address")),
        },
        None if host.contains(':') => return Err(failure("too many colons in address")),
        None => host,
    };
    if host.contains(['[', ']']) || port.contains(['[', ']']) {
        return Err(failure("unexpected '[' in address"));
    }
    Ok(string_list([host, port]))
}

fn join_host_port(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let name = match any(arguments, 0)? {
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        value @ Value::List(_) => match address(value) {
            Some(ip) => ip.to_string(),
            None => return Err(Failure::error(format!("invalid host {}", host.show(value)))),
        },
        value => return Err(Failure::error(format!("invalid host {}", host.show(value)))),
    };
    let port = match any(arguments, 1)? {
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Number(number) if number.is_int() => number.to_string(),
        value => return Err(Failure::error(format!("invalid port {}", host.show(value)))),
    };
    text_result(if name.contains([':', '%']) {
        format!("[{name}]:{port}")
    } else {
        format!("{name}:{port}")
    })
}

/// Whether text is a fully qualified domain name in ASCII: labels of at most 63 characters, none
/// empty except a final one, no hyphen at the edges or in third and fourth place.
fn fqdn(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    let name = text.strip_suffix('.').unwrap_or(text);
    let within = !name.is_empty() && name.len() <= 253 && name.is_ascii();
    Ok(Value::Bool(within && name.split('.').all(is_label)))
}

fn is_label(label: &str) -> bool {
    let sized = (1..=63).contains(&label.len());
    let edges = !label.starts_with('-') && !label.ends_with('-');
    let plain = label
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    // An encoded label has a second part of its own; that it decodes is not checked further.
    let encoded = label
        .to_ascii_lowercase()
        .strip_prefix("xn--")
        .map(|rest| rest.contains('-'));
    let hyphens = label.get(2..4) != Some("--") || encoded == Some(true);
    sized && edges && plain && hyphens
}

fn read_url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| error.to_string())
}

fn absolute_url(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    if read_url(text).map_err(Failure::Error)?.scheme.is_empty() {
        return Err(Failure::error("URL is not absolute"));
    }
    Ok(Value::Bool(true))
}
