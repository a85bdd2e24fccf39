//! Macros: calls that stand for a fold or a presence test and are rewritten while parsing.

use super::Parser;
use crate::ast::{
    Call, Comprehension, Element, Entry, Expr, ExprKind, Field, Literal, Select, operator,
};
use crate::library::Library;
use crate::source::Position;

/// Name of the accumulator of every macro; `@` keeps it out of reach of expressions.
pub(crate) const ACCUMULATOR: &str = "@result";

/// Iteration variable of folds that never iterate.
const UNUSED: &str = "#unused";

/// A call handed back because no macro has its name and shape.
type Unchanged = (Option<Expr>, Vec<Expr>);

/// The expansion, or the error to report with the place to blame.
type Expansion = Result<Expr, (Position, String)>;

impl Parser<'_, '_> {
    /// Expands `target.function(arguments)` if it is a macro.
    pub(super) fn expand_macro(
        &mut self,
        position: Position,
        function: &str,
        target: Option<Expr>,
        arguments: Vec<Expr>,
    ) -> Result<Expr, Unchanged> {
        let two_variables = self.macros.contains(Library::TwoVariableComprehensions);
        let optional = self.macros.contains(Library::Optional);
        let bind = self.macros.contains(Library::Bindings);
        let sort = self.macros.contains(Library::Lists);
        let math = self.macros.contains(Library::Math);
        let mut maker = Maker {
            parser: self,
            position,
        };
        let expansion = match (function, target, arguments.len()) {
            ("has", None, 1) => maker.has(arguments),
            ("all" | "exists" | "exists_one", Some(target), 2) => {
                maker.quantifier(function, target, arguments)
            }
            ("map", Some(target), 2 | 3) | ("filter", Some(target), 2) => {
                maker.map(function, target, arguments)
            }
            ("all" | "exists" | "exists_one" | "existsOne", Some(target), 3) if two_variables => {
                maker.quantifier(function, target, arguments)
            }
            ("transformList" | "transformMap" | "transformMapEntry", Some(target), 3 | 4)
                if two_variables =>
            {
                maker.transform(function, target, arguments)
            }
            ("optMap" | "optFlatMap", Some(target), 2) if optional => {
                maker.optional_map(function, target, arguments)
            }
            ("bind", Some(target), 3)
                if bind && matches!(&target.kind, ExprKind::Ident(name) if name == "cel") =>
            {
                maker.bind(arguments)
            }
            ("sortBy", Some(target), 2) if sort => maker.sort_by(target, arguments),
            ("greatest" | "least", Some(target), _)
                if math && matches!(&target.kind, ExprKind::Ident(name) if name == "math") =>
            {
                maker.extreme(function, &target, arguments)
            }
            (_, target, _) => return Err((target, arguments)),
        };
        Ok(expansion.unwrap_or_else(|(position, message)| self.report(position, message)))
    }
}

/// Builds the nodes of one expansion; they all stand where the macro call stands.
struct Maker<'m, 's, 'p> {
    parser: &'m mut Parser<'s, 'p>,
    position: Position,
}

impl Maker<'_, '_, '_> {
    fn literal(&mut self, literal: Literal) -> Expr {
        self.parser.literal(self.position, literal)
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.parser
            .node(self.position, ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, arguments: Vec<Expr>) -> Expr {
        self.parser.call(self.position, function, arguments)
    }

    fn member_call(&mut self, function: &str, target: Expr) -> Expr {
        self.parser.node(
            self.position,
            ExprKind::Call(Box::new(Call {
                target: Some(target),
                function: function.to_owned(),
                arguments: Vec::new(),
            })),
        )
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        let elements = elements
            .into_iter()
            .map(|value| Element {
                value,
                optional: false,
            })
            .collect();
        self.parser.node(self.position, ExprKind::List(elements))
    }

    fn fold(&mut self, comprehension: Comprehension) -> Expr {
        self.parser.node(
            self.position,
            ExprKind::Comprehension(Box::new(comprehension)),
        )
    }

    fn place(&self, expr: &Expr) -> Position {
        self.parser.positions.get(expr.id)
    }

    /// `has(a.b)`.
    fn has(&mut self, arguments: Vec<Expr>) -> Expansion {
        let Some(argument) = arguments.into_iter().next() else {
            return Err((self.position, "invalid argument to has() macro".to_owned()));
        };
        let place = self.place(&argument);
        match argument.kind {
            ExprKind::Select(select) => Ok(self.parser.node(
                self.position,
                ExprKind::Select(Box::new(Select {
                    test_only: true,
                    ..*select
                })),
            )),
            _ => Err((place, "invalid argument to has() macro".to_owned())),
        }
    }

    /// Takes the iteration variables off the front of the arguments.
    fn variables(
        &mut self,
        arguments: &mut std::vec::IntoIter<Expr>,
        two: bool,
        not_a_name: &str,
    ) -> Result<(String, Option<String>), (Position, String)> {
        let mut names: Vec<String> = Vec::with_capacity(2);
        for argument in arguments.by_ref().take(if two { 2 } else { 1 }) {
            let place = self.place(&argument);
            let ExprKind::Ident(name) = argument.kind else {
                return Err((place, not_a_name.to_owned()));
            };
            if names.contains(&name) {
                return Err((place, format!("duplicate variable name: {name}")));
            }
            if name == ACCUMULATOR || name == "__result__" {
                return Err((
                    place,
                    "iteration variable overwrites accumulator variable".to_owned(),
                ));
            }
            names.push(name);
        }
        let mut names = names.into_iter();
        Ok((names.next().unwrap_or_default(), names.next()))
    }

    /// `range.all(x, p)` and its relatives, with one or two variables.
    fn quantifier(&mut self, function: &str, range: Expr, arguments: Vec<Expr>) -> Expansion {
        let two = arguments.len() == 3;
        let mut arguments = arguments.into_iter();
        let (variable, second_variable) =
            self.variables(&mut arguments, two, "argument must be a simple name")?;
        let Some(predicate) = arguments.next() else {
            return Err((self.position, "missing predicate".to_owned()));
        };
        let (init, condition, step, result);
        match function {
            "all" => {
                init = self.literal(Literal::Bool(true));
                let accumulator = self.accumulator();
                condition = self.call(operator::NOT_STRICTLY_FALSE, vec![accumulator]);
                let accumulator = self.accumulator();
                step = self.call(operator::LOGICAL_AND, vec![accumulator, predicate]);
                result = self.accumulator();
            }
            "exists" => {
                init = self.literal(Literal::Bool(false));
                let accumulator = self.accumulator();
                let negated = self.call(operator::LOGICAL_NOT, vec![accumulator]);
                condition = self.call(operator::NOT_STRICTLY_FALSE, vec![negated]);
                let accumulator = self.accumulator();
                step = self.call(operator::LOGICAL_OR, vec![accumulator, predicate]);
                result = self.accumulator();
            }
            _ => {
                init = self.literal(Literal::Int(0));
                condition = self.literal(Literal::Bool(true));
                let (accumulator, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                let added = self.call(operator::ADD, vec![accumulator, one]);
                let accumulator = self.accumulator();
                step = self.call(operator::CONDITIONAL, vec![predicate, added, accumulator]);
                let (accumulator, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                result = self.call(operator::EQUALS, vec![accumulator, one]);
            }
        }
        Ok(self.fold(Comprehension {
            range,
            variable,
            second_variable,
            accumulator: ACCUMULATOR.to_owned(),
            init,
            condition,
            step,
            result,
        }))
    }

    /// `range.map(x, f)`, `range.map(x, p, f)` and `range.filter(x, p)`.
    fn map(&mut self, function: &str, range: Expr, arguments: Vec<Expr>) -> Expansion {
        let filtered = arguments.len() == 3;
        let element = (function == "filter").then(|| arguments[0].clone());
        let mut arguments = arguments.into_iter();
        let (variable, _) =
            self.variables(&mut arguments, false, "argument is not an identifier")?;
        let first = arguments.next();
        let (filter, transform) = match (element, filtered) {
            (Some(element), _) => (first, Some(element)),
            (None, true) => (first, arguments.next()),
            (None, false) => (None, first),
        };
        let Some(transform) = transform else {
            return Err((self.position, "missing transform".to_owned()));
        };
        let init = self.list(Vec::new());
        let accumulator = self.accumulator();
        let added = self.list(vec![transform]);
        let step = self.call(operator::ADD, vec![accumulator, added]);
        Ok(self.collect(range, (variable, None), init, filter, step))
    }

    /// `range.transformList(i, v, f)` and its relatives.
    fn transform(&mut self, function: &str, range: Expr, arguments: Vec<Expr>) -> Expansion {
        let filtered = arguments.len() == 4;
        let mut arguments = arguments.into_iter();
        let variables = self.variables(&mut arguments, true, "argument must be a simple name")?;
        let filter = if filtered { arguments.next() } else { None };
        let Some(transform) = arguments.next() else {
            return Err((self.position, "missing transform".to_owned()));
        };
        let accumulator = self.accumulator();
        let (init, step) = match function {
            "transformList" => {
                let added = self.list(vec![transform]);
                let step = self.call(operator::ADD, vec![accumulator, added]);
                (self.list(Vec::new()), step)
            }
            "transformMap" => {
                let key = self.ident(&variables.0);
                let step = self.call("cel.@mapInsert", vec![accumulator, key, transform]);
                (
                    self.parser.node(self.position, ExprKind::Map(Vec::new())),
                    step,
                )
            }
            _ => {
                let step = self.call("cel.@mapInsert", vec![accumulator, transform]);
                (
                    self.parser.node(self.position, ExprKind::Map(Vec::new())),
                    step,
                )
            }
        };
        Ok(self.collect(range, variables, init, filter, step))
    }

    /// A fold that visits everything, keeping the accumulator where `filter` says no.
    fn collect(
        &mut self,
        range: Expr,
        (variable, second_variable): (String, Option<String>),
        init: Expr,
        filter: Option<Expr>,
        step: Expr,
    ) -> Expr {
        let condition = self.literal(Literal::Bool(true));
        let step = match filter {
            None => step,
            Some(filter) => {
                let accumulator = self.accumulator();
                self.call(operator::CONDITIONAL, vec![filter, step, accumulator])
            }
        };
        let result = self.accumulator();
        self.fold(Comprehension {
            range,
            variable,
            second_variable,
            accumulator: ACCUMULATOR.to_owned(),
            init,
            condition,
            step,
            result,
        })
    }

    /// A fold over nothing: names `init` as `name` inside `result`.
    fn name(&mut self, name: String, init: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        self.fold(Comprehension {
            range,
            variable: UNUSED.to_owned(),
            second_variable: None,
            accumulator: name,
            init,
            condition,
            step,
            result,
        })
    }

    /// `cel.bind(name, init, result)`.
    fn bind(&mut self, arguments: Vec<Expr>) -> Expansion {
        let mut arguments = arguments.into_iter();
        let (Some(name), Some(init), Some(result)) =
            (arguments.next(), arguments.next(), arguments.next())
        else {
            return Err((self.position, "cel.bind() needs three arguments".to_owned()));
        };
        let place = self.place(&name);
        let ExprKind::Ident(name) = name.kind else {
            return Err((
                place,
                "cel.bind() variable names must be simple identifiers".to_owned(),
            ));
        };
        Ok(self.name(name, init, result))
    }

    /// `list.sortBy(x, key)`: the list gets a name, so that it is evaluated once for both the
    /// values and the keys.
    fn sort_by(&mut self, target: Expr, arguments: Vec<Expr>) -> Expansion {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(
            target.kind,
            ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct(..)
        ) {
            return Err((
                self.place(&target),
                "sortBy can only be applied to a list, identifier, comprehension, call or select \
                 expression"
                    .to_owned(),
            ));
        }
        let range = self.ident(INPUT);
        let keys = self.map("map", range, arguments)?;
        let values = self.ident(INPUT);
        let sorted = self.parser.node(
            self.position,
            ExprKind::Call(Box::new(Call {
                target: Some(values),
                function: "@sortByAssociatedKeys".to_owned(),
                arguments: vec![keys],
            })),
        );
        Ok(self.name(INPUT.to_owned(), target, sorted))
    }

    /// `math.greatest(...)` and `math.least(...)`.
    fn extreme(&mut self, function: &str, target: &Expr, arguments: Vec<Expr>) -> Expansion {
        let name = if function == "greatest" {
            "math.@max"
        } else {
            "math.@min"
        };
        let invalid = |argument: &Expr, reason: &str| {
            Err((self.place(argument), format!("math.{function}() {reason}")))
        };
        match arguments.as_slice() {
            [] => return invalid(target, "requires at least one argument"),
            [only] => {
                let numbers = matches!(&only.kind, ExprKind::List(elements)
                    if !elements.is_empty()
                        && elements.iter().all(|element| may_be_number(&element.value)));
                let list = matches!(only.kind, ExprKind::List(_));
                if !(numbers || !list && may_be_number(only)) {
                    return invalid(only, "invalid single argument value");
                }
            }
            several => {
                if let Some(wrong) = several.iter().find(|argument| !may_be_number(argument)) {
                    return invalid(wrong, "simple literal arguments must be numeric");
                }
            }
        }
        let arguments = if arguments.len() > 2 {
            vec![self.list(arguments)]
        } else {
            arguments
        };
        Ok(self.call(name, arguments))
    }

    /// `optional.optMap(x, f)` and `optional.optFlatMap(x, f)`.
    fn optional_map(&mut self, function: &str, target: Expr, arguments: Vec<Expr>) -> Expansion {
        let mut arguments = arguments.into_iter();
        let (Some(name), Some(transform)) = (arguments.next(), arguments.next()) else {
            return Err((self.position, format!("{function}() needs two arguments")));
        };
        let place = self.place(&name);
        let ExprKind::Ident(name) = name.kind else {
            return Err((
                place,
                format!("{function}() variable name must be a simple identifier"),
            ));
        };
        let again = self.copy(&target);
        let test = self.member_call("hasValue", target);
        let value = self.member_call("value", again);
        let mut mapped = self.name(name, value, transform);
        if function == "optMap" {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operator::CONDITIONAL, vec![test, mapped, none]))
    }

    /// The same expression with fresh identities, at its own place.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let place = self.place(expr);
        if self.parser.positions.len() >= super::MAX_NODES {
            return self.parser.unspecified(place);
        }
        let kind = match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => expr.kind.clone(),
            ExprKind::Select(select) => ExprKind::Select(Box::new(Select {
                operand: self.copy(&select.operand),
                field: select.field.clone(),
                test_only: select.test_only,
            })),
            ExprKind::Call(call) => ExprKind::Call(Box::new(Call {
                target: call.target.as_ref().map(|target| self.copy(target)),
                function: call.function.clone(),
                arguments: call.arguments.iter().map(|arg| self.copy(arg)).collect(),
            })),
            ExprKind::List(elements) => ExprKind::List(
                elements
                    .iter()
                    .map(|element| Element {
                        value: self.copy(&element.value),
                        optional: element.optional,
                    })
                    .collect(),
            ),
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: self.copy(&entry.key),
                        value: self.copy(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            ),
            ExprKind::Struct(name, fields) => ExprKind::Struct(
                name.clone(),
                fields
                    .iter()
                    .map(|field| Field {
                        name: field.name.clone(),
                        value: self.copy(&field.value),
                    })
                    .collect(),
            ),
            ExprKind::Comprehension(fold) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&fold.range),
                variable: fold.variable.clone(),
                second_variable: fold.second_variable.clone(),
                accumulator: fold.accumulator.clone(),
                init: self.copy(&fold.init),
                condition: self.copy(&fold.condition),
                step: self.copy(&fold.step),
                result: self.copy(&fold.result),
            })),
        };
        self.parser.node(place, kind)
    }
}

/// Whether an argument could be a number, judged by its form.
fn may_be_number(expr: &Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Literal(
            Literal::Null | Literal::Bool(_) | Literal::String(_) | Literal::Bytes(_)
        ) | ExprKind::List(_)
            | ExprKind::Map(_)
            | ExprKind::Struct(..)
    )
}
