//! Pipelines: commands, operands and the variables that they declare.

use bellwether_go::quote;
use bellwether_go::value::Text;

use super::{NESTING_LIMIT, Parsed, Parser, number};
use crate::ast::{Command, Expr, Pipe};
use crate::lex::Kind;
use crate::stack::deeper;

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let mut pipe = Pipe {
            pos: self.peek_non_space().pos,
            is_assign: false,
            declared: Vec::new(),
            commands: Vec::new(),
        };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if matches!(
                command.args.first(),
                Some(
                    Expr::Bool(..)
                        | Expr::Dot(_)
                        | Expr::Nil(_)
                        | Expr::Number(_)
                        | Expr::String { .. }
                )
            ) {
                let stage = index + 1;
                return self.error(format!("non executable command in pipeline stage {stage}"));
            }
        }
        Ok(pipe)
    }

    /// Variables before `:=` or `=`; `range` may have two.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next();
            // A blank after the variable has to be taken back as well.
            let after = self.peek().clone();
            let next = self.peek_non_space();
            let is_comma = next.kind == Kind::Char && next.text == ",";
            if matches!(next.kind, Kind::Assign | Kind::Declare) || is_comma {
                pipe.is_assign = next.kind == Kind::Assign;
                self.next_non_space();
                pipe.declared.push(variable.text.as_ref().into());
                self.scope.variables.push(variable.text.into_owned());
                if !is_comma {
                    return Ok(());
                }
                if context == "range" && pipe.declared.len() < 2 {
                    let follows = self.peek_non_space().kind;
                    if matches!(
                        follows,
                        Kind::Variable | Kind::RightDelim | Kind::RightParen
                    ) {
                        continue;
                    }
                    return self.error("range can only initialize variables");
                }
                return self.error(format!("too many declarations in {context}"));
            }
            if after.kind == Kind::Space {
                self.tokens[1] = after;
                self.tokens[2] = variable;
                self.peeked = 3;
            } else {
                self.tokens[1] = variable;
                self.peeked = 2;
            }
            return Ok(());
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut command = Command {
            pos: self.peek_non_space().pos,
            args: Vec::new(),
        };
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                command.args.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.backup();
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(&token, "operand"),
            }
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        Ok(command)
    }

    fn operand(&mut self) -> Parsed<Option<Expr>> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        if self.peek().kind != Kind::Field {
            return Ok(Some(term));
        }
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(Text::from(&self.next().text[1..]));
        }
        Ok(Some(match term {
            Expr::Field { mut names, .. } => {
                names.append(&mut fields);
                Expr::Field { pos, names }
            }
            Expr::Variable { name, .. } => Expr::Variable { pos, name, fields },
            Expr::Bool(..)
            | Expr::String { .. }
            | Expr::Number(_)
            | Expr::Nil(_)
            | Expr::Dot(_) => {
                let shown = quote::quote(&term.to_string());
                return self.error(format!("unexpected . after term {shown}"));
            }
            other => Expr::Chain {
                pos,
                base: Box::new(other),
                fields,
            },
        }))
    }

    fn term(&mut self) -> Parsed<Option<Expr>> {
        let token = self.next_non_space();
        let pos = token.pos;
        Ok(Some(match token.kind {
            Kind::Identifier => {
                let Some(function) = self.functions.get(&token.text) else {
                    let name = quote::quote(&token.text);
                    return self.error(format!("function {name} not defined"));
                };
                Expr::Function { pos, function }
            }
            Kind::Dot => Expr::Dot(pos),
            Kind::Nil => Expr::Nil(pos),
            Kind::Variable => {
                if !self
                    .scope
                    .variables
                    .iter()
                    .any(|known| *known == token.text)
                {
                    let name = quote::quote(&token.text);
                    return self.error(format!("undefined variable {name}"));
                }
                Expr::Variable {
                    pos,
                    name: token.text.into(),
                    fields: Vec::new(),
                }
            }
            Kind::Field => Expr::Field {
                pos,
                names: vec![Text::from(&token.text[1..])],
            },
            Kind::Bool => Expr::Bool(pos, token.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                match number::read(pos, &token.text, token.kind) {
                    Ok(number) => Expr::Number(Box::new(number)),
                    Err(message) => return self.error(message),
                }
            }
            Kind::LeftParen => {
                self.nesting += 1;
                if self.nesting > NESTING_LIMIT {
                    return self.error("max expression depth exceeded");
                }
                let pipe = deeper(|| self.pipeline("parenthesized pipeline", Kind::RightParen))?;
                self.nesting -= 1;
                Expr::Pipe(Box::new(pipe))
            }
            Kind::String | Kind::RawString => {
                let bytes = self.unquoted(&token.text)?;
                Expr::String {
                    pos,
                    quoted: token.text.into(),
                    text: Text::from(bytes),
                }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }
}
