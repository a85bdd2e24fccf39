//! Builds trees from tokens, as strictly as `text/template/parse` does.

mod number;
mod pipeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_go::quote;

use crate::ast::{Branch, Location, Node, Source, Tree};
use crate::error::TemplateError;
use crate::function::Functions;
use crate::lex::{Kind, Lexer, Token};
use crate::stack::deeper;

/// Blocks and parentheses nested deeper than this are refused.
const NESTING_LIMIT: usize = 1000;

/// The templates of one text, by name: the text itself and what it defines.
pub(crate) type Trees = BTreeMap<String, Tree>;

/// Parses a text.
pub(crate) fn parse(
    name: &str,
    text: &str,
    delimiters: (&str, &str),
    functions: &Functions,
) -> Result<Trees, TemplateError> {
    let source = Arc::new(Source {
        name: name.to_owned(),
        text: text.to_owned(),
    });
    let mut lexer = Lexer::new(text, delimiters.0, delimiters.1);
    lexer.break_is_keyword = functions.get("break").is_none();
    lexer.continue_is_keyword = functions.get("continue").is_none();
    let mut parser = Parser {
        lexer,
        functions,
        source,
        trees: Trees::new(),
        tokens: std::array::from_fn(|_| Token {
            kind: Kind::Eof,
            pos: 0,
            text: "".into(),
            line: 0,
        }),
        peeked: 0,
        scope: Scope::new(),
        nesting: 0,
    };
    let nodes = parser.top()?;
    parser.add(name.to_owned(), nodes)?;
    Ok(parser.trees)
}

/// What is known while one template is read; a definition starts over.
struct Scope {
    variables: Vec<String>,
    action_line: usize,
    ranges: usize,
}

impl Scope {
    fn new() -> Self {
        Self {
            variables: vec!["$".to_owned()],
            action_line: 0,
            ranges: 0,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    functions: &'a Functions,
    source: Arc<Source>,
    trees: Trees,
    /// Up to three tokens that were taken back.
    tokens: [Token<'a>; 3],
    peeked: usize,
    scope: Scope,
    nesting: usize,
}

/// A node, or the keyword that ends a list of nodes.
enum Item {
    Node(Node),
    End,
    /// `else`, and what follows it directly.
    Else,
}

type Parsed<T> = Result<T, TemplateError>;

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.tokens[0] = self.lexer.next_token();
        }
        self.tokens[self.peeked].clone()
    }

    fn backup(&mut self) {
        self.peeked += 1;
    }

    fn peek(&mut self) -> &Token<'a> {
        if self.peeked == 0 {
            self.peeked = 1;
            self.tokens[0] = self.lexer.next_token();
        }
        &self.tokens[self.peeked - 1]
    }

    fn next_non_space(&mut self) -> Token<'a> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token<'a> {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(TemplateError::parse(
            Location {
                name: self.source.name.clone(),
                line: self.tokens[0].line,
                column: None,
            },
            message.into(),
        ))
    }

    fn unexpected<T>(&self, token: &Token<'_>, context: &str) -> Parsed<T> {
        if token.kind != Kind::Error {
            return self.error(format!("unexpected {} in {context}", token.shown()));
        }
        let mut extra = String::new();
        let line = self.scope.action_line;
        if line != 0 && line != token.line {
            let action = if token.text.ends_with(" action") {
                ""
            } else {
                " in action"
            };
            extra = format!("{action} started at {}:{line}", self.source.name);
        }
        self.error(format!("{}{extra}", token.text))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token<'a>> {
        let token = self.next_non_space();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(&token, context)
        }
    }

    fn add(&mut self, name: String, nodes: Vec<Node>) -> Parsed<()> {
        let tree = Tree {
            name: name.clone(),
            source: Arc::clone(&self.source),
            nodes,
        };
        match self.trees.get(&name) {
            Some(known) if !known.is_empty() => {
                if !tree.is_empty() {
                    let name = quote::quote(&name);
                    return self.error(format!("template: multiple definition of template {name}"));
                }
            }
            _ => {
                self.trees.insert(name, tree);
            }
        }
        Ok(())
    }

    /// The text outside of definitions.
    fn top(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                // Both are taken back.
                self.tokens[1] = delim;
                self.peeked = 2;
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::End => return self.error("unexpected {{end}}"),
                Item::Else => return self.error("unexpected {{else}}"),
            }
        }
        Ok(nodes)
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let (nodes, end) = self.item_list()?;
        if !matches!(end, Item::End) {
            return self.error(format!("unexpected {{{{else}}}} in {CONTEXT}"));
        }
        self.add(name, nodes)?;
        self.scope = outer;
        Ok(())
    }

    fn item_list(&mut self) -> Parsed<(Vec<Node>, Item)> {
        self.nesting += 1;
        if self.nesting > NESTING_LIMIT {
            return self.error("blocks are nested too deeply");
        }
        let mut nodes = Vec::new();
        while self.peek_non_space().kind != Kind::Eof {
            match deeper(|| self.text_or_action())? {
                Item::Node(node) => nodes.push(node),
                end => {
                    self.nesting -= 1;
                    return Ok((nodes, end));
                }
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text {
                text: token.text.into(),
            })),
            Kind::LeftDelim => {
                self.scope.action_line = token.line;
                let item = self.action();
                self.scope.action_line = 0;
                item
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.loop_control(Node::Break, "{{break}}")?,
            Kind::Continue => self.loop_control(Node::Continue, "{{continue}}")?,
            Kind::Else => {
                let next = self.peek_non_space();
                if !matches!(next.kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Item::Else);
            }
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::End);
            }
            Kind::If => Node::If(self.control("if")?),
            Kind::Range => Node::Range(self.control("range")?),
            Kind::With => Node::With(self.control("with")?),
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let pos = self.peek().pos;
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                Node::Action { pos, pipe }
            }
        };
        Ok(Item::Node(node))
    }

    fn loop_control(&mut self, node: Node, shown: &str) -> Parsed<Node> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, shown);
        }
        if self.scope.ranges == 0 {
            return self.error(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn control(&mut self, context: &'static str) -> Parsed<Branch> {
        let known = self.scope.variables.len();
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        self.scope.ranges += usize::from(context == "range");
        let (body, next) = self.item_list()?;
        self.scope.ranges -= usize::from(context == "range");
        let mut otherwise = None;
        if matches!(next, Item::Else) {
            let follows = self.peek().kind;
            otherwise = Some(match (context, follows) {
                ("if", Kind::If) => {
                    self.next();
                    vec![Node::If(deeper(|| self.chained(context))?)]
                }
                ("with", Kind::With) => {
                    self.next();
                    vec![Node::With(deeper(|| self.chained(context))?)]
                }
                _ => {
                    let (nodes, end) = self.item_list()?;
                    if !matches!(end, Item::End) {
                        return self.error("expected end; found {{else}}");
                    }
                    nodes
                }
            });
        }
        self.scope.variables.truncate(known);
        Ok(Branch {
            pipe,
            body,
            otherwise,
        })
    }

    /// A branch after `else`, which nests in the tree though not in the text.
    fn chained(&mut self, context: &'static str) -> Parsed<Branch> {
        self.nesting += 1;
        if self.nesting > NESTING_LIMIT {
            return self.error("blocks are nested too deeply");
        }
        let branch = self.control(context);
        self.nesting -= 1;
        branch
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let (nodes, end) = self.item_list()?;
        if !matches!(end, Item::End) {
            return self.error(format!("unexpected {{{{else}}}} in {CONTEXT}"));
        }
        self.add(name.clone(), nodes)?;
        self.scope = outer;
        Ok(Node::Template {
            pos: token.pos,
            name: name.into(),
            pipe: Some(pipe),
        })
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        Ok(Node::Template {
            pos: token.pos,
            name: name.into(),
            pipe,
        })
    }

    fn template_name(&mut self, token: &Token<'_>, context: &str) -> Parsed<String> {
        match token.kind {
            Kind::String | Kind::RawString => {
                let name = self.unquoted(&token.text)?;
                Ok(String::from_utf8_lossy(&name).into_owned())
            }
            _ => self.unexpected(token, context),
        }
    }

    fn unquoted(&self, literal: &str) -> Parsed<Vec<u8>> {
        match quote::unquote(literal) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.error(error.to_string()),
        }
    }
}
