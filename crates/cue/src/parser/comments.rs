//! Attaching comments to the declarations and elements they belong to.

use super::Parser;
use crate::ast::{Comment, CommentGroup, Comments};
use crate::token::Span;

impl Parser<'_> {
    /// Groups the comments met so far that start before `limit`.
    pub(super) fn take_groups(&mut self, limit: u32) -> Vec<CommentGroup> {
        let count = self
            .pending
            .iter()
            .take_while(|span| span.start < limit)
            .count();
        let spans: Vec<Span> = self.pending.drain(..count).collect();
        self.group(&spans)
    }

    fn group(&self, spans: &[Span]) -> Vec<CommentGroup> {
        let mut groups: Vec<CommentGroup> = Vec::new();
        let mut last_line = None;
        for span in spans {
            let line = self.lines.line(span.start);
            let comment = Comment {
                span: *span,
                text: span.text(self.source).into(),
            };
            match groups.last_mut() {
                Some(group) if last_line.is_some_and(|last| last + 1 == line) => {
                    group.comments.push(comment);
                }
                _ => groups.push(CommentGroup {
                    comments: vec![comment],
                }),
            }
            last_line = Some(line);
        }
        groups
    }

    /// The comments above the token the parser stands at.
    pub(super) fn leading_comments(&mut self) -> Comments {
        if self.pending.is_empty() {
            return Comments::default();
        }
        let leading = self.take_groups(self.span.start);
        let last_line = leading
            .last()
            .and_then(|group| group.comments.last())
            .map(|comment| self.lines.line(comment.span.start));
        let here = self.lines.line(self.span.start);
        Comments {
            leading,
            leading_attached: last_line.is_some_and(|line| line + 1 >= here),
            trailing: Vec::new(),
        }
    }

    /// Moves the comments inside or on the last line of what ended at `end` to its trailing ones.
    pub(super) fn trailing_comments(&mut self, comments: &mut Comments, end: u32) {
        if self.pending.is_empty() {
            return;
        }
        let line = self.lines.line(end.saturating_sub(1));
        let count = self
            .pending
            .iter()
            .take_while(|span| span.start < end || self.lines.line(span.start) == line)
            .count();
        let spans: Vec<Span> = self.pending.drain(..count).collect();
        comments.trailing.extend(self.group(&spans));
    }
}
