//! The source formatter: one layout for everybody, comments and line breaks kept where they matter.
//!
//! [`format_source`] parses and prints; printing what was printed changes nothing. Tabs indent,
//! one blank at most separates declarations, values of neighbouring fields line up, and whether a
//! struct or list stands on one line or on several is taken from the source.

mod declaration;
mod expression;

#[cfg(test)]
mod tests;

use crate::ast::{CommentGroup, File, ImportSpec};
use crate::diagnostic::Diagnostic;
use crate::parser::parse_file;

/// Formats source text; the problems of text that does not parse otherwise.
pub fn format_source(name: &str, source: &str) -> Result<String, Vec<Diagnostic>> {
    let (file, problems) = parse_file(name, source);
    if problems.is_empty() {
        Ok(format_file(&file))
    } else {
        Err(problems)
    }
}

/// Formats a parsed file.
pub fn format_file(file: &File) -> String {
    let mut printer = Printer {
        file,
        output: String::new(),
        indent: 0,
    };
    printer.preamble();
    printer.declarations(&file.decls, &file.end_comments);
    let mut output = printer.output;
    let trimmed = output.trim_end().len();
    output.truncate(trimmed);
    if !output.is_empty() {
        output.push('\n');
    }
    output
}

/// Text under construction.
struct Printer<'a> {
    file: &'a File,
    output: String,
    indent: usize,
}

impl Printer<'_> {
    /// The line of an offset, counted from one.
    fn line(&self, offset: u32) -> u32 {
        self.file.lines.locate(offset).line
    }

    /// The text between two offsets as it was written.
    fn written(&self, span: crate::token::Span) -> &str {
        span.text(&self.file.source)
    }

    fn new_line(&mut self) {
        self.output.push('\n');
        self.output.extend(std::iter::repeat_n('\t', self.indent));
    }

    /// Prints something on its own and hands the text back.
    fn captured(&self, print: impl FnOnce(&mut Printer<'_>)) -> String {
        let mut printer = Printer {
            file: self.file,
            output: String::new(),
            indent: self.indent,
        };
        print(&mut printer);
        printer.output
    }

    /// Comment lines, each at the current indentation.
    fn comment_lines(&mut self, group: &CommentGroup) {
        for (position, comment) in group.comments.iter().enumerate() {
            if position > 0 {
                self.new_line();
            }
            self.output.push_str(&comment.text);
        }
    }

    /// Everything before the declarations.
    fn preamble(&mut self) {
        for attribute in &self.file.attributes {
            self.output.push_str(&attribute.text);
            self.output.push_str("\n\n");
        }
        if let Some(clause) = &self.file.package {
            self.leading(&clause.comments);
            self.output.push_str("package ");
            self.output.push_str(&clause.name.name);
            self.trailing(&clause.comments);
            self.output.push_str("\n\n");
        }
        for import in &self.file.imports {
            self.leading(&import.comments);
            self.output.push_str("import ");
            match import.specs.as_slice() {
                [spec] if !import.grouped => self.import_spec(spec),
                specs => {
                    self.output.push('(');
                    self.indent += 1;
                    for spec in specs {
                        self.new_line();
                        self.leading(&spec.comments);
                        self.import_spec(spec);
                    }
                    for group in &import.end_comments {
                        self.new_line();
                        self.comment_lines(group);
                    }
                    self.indent -= 1;
                    self.new_line();
                    self.output.push(')');
                }
            }
            self.trailing(&import.comments);
            self.output.push_str("\n\n");
        }
    }

    fn import_spec(&mut self, spec: &ImportSpec) {
        if let Some(name) = &spec.name {
            self.output.push_str(&name.name);
            self.output.push(' ');
        }
        let path = self.written(spec.path_span).to_owned();
        self.output.push_str(&path);
        self.trailing(&spec.comments);
    }
}
