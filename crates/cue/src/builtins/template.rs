//! Package `text/template`: Go's templates over plain data.

use bellwether_go::escape;
use bellwether_go::value::{Kind as GoKind, List, Named, Object, Type, UintKind, Value as GoValue};
use bellwether_template::{Budget, Functions, NOWHERE, Options, Phase, Rendered, Set};

use super::argument::{Outcome, any, string, text_result};
use super::{ANY, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "text/template",
    functions: &[
        function("Execute", &[STRING, ANY], Kind::STRING, execute),
        function("HTMLEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(lossy(&escape::html(string(a, 0)?.as_bytes())))
        }),
        function("JSEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(lossy(&escape::script(string(a, 0)?.as_bytes())))
        }),
    ],
    source: "",
};

/// Steps that one template may take; the evaluation is charged for those that it took.
const STEPS: u64 = 1_000_000;

/// How deep templates may call each other.
const DEPTH: usize = 100;

fn execute(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut set = Set::new(Options::new(Functions::builtin()));
    let wrong = |error: bellwether_template::TemplateError| Failure::error(error.to_string());
    set.add("", string(arguments, 0)?).map_err(wrong)?;
    let mut budget = Budget {
        steps: STEPS,
        bytes: u64::try_from(host.output_limit()).unwrap_or(u64::MAX),
        depth: DEPTH,
    };
    let rendered = set.render("", &to_go(any(arguments, 1)?), &NOWHERE, &mut budget);
    host.work(usize::try_from(STEPS - budget.steps).unwrap_or(usize::MAX))?;
    match rendered {
        Ok(Rendered::Text(text)) => text_result(lossy(&text)),
        Ok(Rendered::Needs(_)) => Err(Failure::error("a template asked for what is not there")),
        Err(error) if error.phase() == Phase::Budget => Err(Failure::error(error.message())),
        Err(error) => Err(wrong(error)),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A value as Go's decoder makes it.
fn to_go(value: &Value) -> GoValue {
    match value {
        Value::Null | Value::Opaque(_) => GoValue::Nil,
        Value::Bool(value) => GoValue::Bool(*value),
        Value::Number(number) if number.is_int() => match number.to_i64() {
            Some(value) => GoValue::int(value),
            None => GoValue::object(BigInt(number.to_string())),
        },
        Value::Number(number) => GoValue::Float(number.to_f64()),
        Value::String(text) => GoValue::from(&**text),
        Value::Bytes(bytes) => {
            let byte = |byte: &u8| GoValue::Uint(UintKind::Uint8, u64::from(*byte));
            let items = bytes.iter().map(byte).collect();
            GoValue::List(List::new(&Type::Uint(UintKind::Uint8), items))
        }
        Value::List(items) => GoValue::list(items.iter().map(to_go).collect()),
        Value::Struct(fields) => {
            GoValue::map(fields.iter().map(|(label, field)| (&**label, to_go(field))))
        }
    }
}

/// An integer that no machine word holds.
#[derive(Debug)]
struct BigInt(String);

impl Object for BigInt {
    fn named(&self) -> &'static Named {
        static TYPE: Named = Named {
            name: "big.Int",
            methods: &[],
        };
        &TYPE
    }

    fn kind(&self) -> GoKind {
        GoKind::Pointer
    }

    fn string(&self) -> Option<String> {
        Some(self.0.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
