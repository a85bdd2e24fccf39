//! Values as texts, as Go's `fmt` writes them.

mod directive;
mod number;
mod verb;

use crate::value::{Limit, Meter, Type, Value};

pub use directive::sprintf;

/// Operands one after the other, with blanks between two that are not strings: `fmt.Sprint`.
pub fn sprint(operands: &[Value], meter: &mut dyn Meter) -> Result<Vec<u8>, String> {
    let mut printer = verb::Printer::new(meter);
    let mut after_string = false;
    for (index, operand) in operands.iter().enumerate() {
        let is_string = matches!(operand, Value::String(_));
        if index > 0 && !is_string && !after_string {
            printer.out.push(b' ');
        }
        printer.operand(operand, 'v')?;
        after_string = is_string;
    }
    Ok(printer.out)
}

/// Operands with blanks between them and a newline at the end: `fmt.Sprintln`.
pub fn sprintln(operands: &[Value], meter: &mut dyn Meter) -> Result<Vec<u8>, String> {
    let mut printer = verb::Printer::new(meter);
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.operand(operand, 'v')?;
    }
    printer.out.push(b'\n');
    Ok(printer.out)
}

/// Appends one value as `%v` writes it.
pub fn append(out: &mut Vec<u8>, value: &Value, meter: &mut dyn Meter) -> Result<(), String> {
    match value {
        Value::String(text) => {
            meter.charge(text.len())?;
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        Value::Nil | Value::Invalid => {
            out.extend_from_slice(b"<nil>");
            meter.charge(5)
        }
        _ => {
            let mut printer = verb::Printer::new(meter);
            std::mem::swap(&mut printer.out, out);
            let done = printer.operand(value, 'v');
            *out = printer.out;
            done
        }
    }
}

/// Appends one value as an action of a template prints it: what a pointer leads to, by its `String` if it
/// has one.
pub fn append_printable(
    out: &mut Vec<u8>,
    value: &Value,
    meter: &mut dyn Meter,
) -> Result<(), String> {
    let Value::Object(object) = value else {
        return append(out, value, meter);
    };
    let mut printer = verb::Printer::new(meter);
    std::mem::swap(&mut printer.out, out);
    let done = match object.pointer_string() {
        Some(text) => printer.write(text.as_bytes()),
        None => printer.fields(&**object, 'v', 0),
    };
    *out = printer.out;
    done
}

/// Messages show at most as many bytes of a value.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// One value as `%v` writes it, for messages: what is not UTF-8 is replaced, and what is longer
/// than any message is cut off.
pub fn text(value: &Value) -> String {
    let mut out = Vec::new();
    if append(&mut out, value, &mut Limit(MESSAGE_LIMIT)).is_err() {
        out.extend_from_slice(b"...");
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The name of a value's type as `%T` writes it.
pub fn type_name(value: &Value) -> String {
    match value {
        Value::Invalid | Value::Nil => "<nil>".to_owned(),
        _ => Type::to_string(&value.type_of()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semver::Version;
    use crate::value::{List, Unmetered};

    #[track_caller]
    fn check(format: &str, operands: &[Value], expected: &str) {
        let text = sprintf(format.as_bytes(), operands, &mut Unmetered).unwrap();
        assert_eq!(String::from_utf8_lossy(&text), expected, "{format}");
    }

    /// Printed by Go 1.26.
    #[test]
    fn verbs_and_flags_are_those_of_go() {
        let words = Value::strings(["a", "b"]);
        check("%w", std::slice::from_ref(&words), "%!w([]string=[a b])");
        check("%#5w", &[Value::from("[a")], "%!w(string= \"[a\")");
        check("%+w", &[Value::Complex(0.0, 1.0)], "%!w(complex128=(0+1i))");
        let version = Value::object(Version::parse("1.2.3").unwrap());
        check(
            "%+d",
            std::slice::from_ref(&version),
            "&{+1 +2 +3 %!d(string=) %!d(string=) %!d(string=1.2.3)}",
        );
        check("%s", &[version], "1.2.3");
    }

    #[test]
    fn bytes_are_kept_as_bytes_and_print_as_a_list() {
        let bytes = || vec![Value::List(List::bytes(b"az".as_slice().into()))];
        check("%v", &bytes(), "[97 122]");
        check("%s", &bytes(), "az");
        check("%x", &bytes(), "617a");
        check("%T", &bytes(), "[]uint8");
    }
}
