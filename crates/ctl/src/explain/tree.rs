//! A tree of short texts, and how it is drawn on a terminal or into a file.

use std::fmt::Write as _;

/// What a text means, which a terminal shows by its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// What the page is about.
    Title,
    /// It is as it should be.
    Good,
    /// It is on its way.
    Active,
    /// It is not as it should be.
    Bad,
    /// It is less important than the rest.
    Quiet,
}

impl Tone {
    /// The escape sequence that switches the colour on.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Title => Some("\x1b[1m"),
            Self::Good => Some("\x1b[32m"),
            Self::Active => Some("\x1b[33m"),
            Self::Bad => Some("\x1b[31m"),
            Self::Quiet => Some("\x1b[2m"),
        }
    }
}

/// A text with its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// What it says.
    pub text: String,
    /// What it means.
    pub tone: Tone,
}

impl Span {
    /// A text with a meaning.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { text, tone }
    }

    /// A text of no particular meaning.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Tone::Plain, text)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// A line, and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The texts of the line.
    pub cells: Vec<Span>,
    /// Whether something happens here now.
    pub is_current: bool,
    /// What belongs to it.
    pub children: Vec<Node>,
}

impl Node {
    /// A line without anything below it.
    pub fn leaf(cells: Vec<Span>) -> Self {
        Self {
            cells,
            ..Self::default()
        }
    }
}

/// How a tree is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Lines with branches before them.
    #[default]
    Branches,
    /// The first line of the children beside their parent, all in columns.
    Columns,
}

/// What is known about an object, as a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// What it is about.
    pub title: Vec<Span>,
    /// What is known.
    pub nodes: Vec<Node>,
    /// What to know or do besides.
    pub notes: Vec<Vec<Span>>,
    /// How it is drawn.
    pub layout: Layout,
}

/// Between two texts of a line.
const GAP: &str = "   ";

impl Tree {
    /// The text of the tree; colours are for terminals only.
    pub fn render(&self, colours: bool) -> String {
        let mut page = Page {
            text: String::new(),
            colours,
        };
        page.spans(&self.title);
        page.end();
        match self.layout {
            Layout::Branches => page.branches(&self.nodes, ""),
            Layout::Columns => page.columns(&self.nodes),
        }
        for note in &self.notes {
            page.spans(note);
            page.end();
        }
        page.text
    }
}

struct Page {
    text: String,
    colours: bool,
}

impl Page {
    fn span(&mut self, span: &Span) {
        match span.tone.code().filter(|_| self.colours) {
            // Writing to a String cannot fail.
            Some(code) => drop(write!(self.text, "{code}{}\x1b[0m", span.text)),
            None => self.text.push_str(&span.text),
        }
    }

    fn padded(&mut self, span: &Span, width: usize) {
        self.span(span);
        let missing = width.saturating_sub(span.width());
        self.text.extend(std::iter::repeat_n(' ', missing));
    }

    fn spans(&mut self, spans: &[Span]) {
        for (index, span) in spans.iter().enumerate() {
            if index > 0 {
                self.text.push_str(GAP);
            }
            self.span(span);
        }
    }

    fn end(&mut self) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
    }

    fn branches(&mut self, nodes: &[Node], before: &str) {
        for (index, node) in nodes.iter().enumerate() {
            let is_last = index + 1 == nodes.len();
            let (branch, below) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            self.text.push_str(before);
            self.text.push_str(branch);
            self.spans(&node.cells);
            self.end();
            self.branches(&node.children, &format!("{before}{below}"));
        }
    }

    fn columns(&mut self, nodes: &[Node]) {
        let with_children = |node: &&Node| !node.children.is_empty();
        let first = |node: &Node| node.cells.first().map_or(0, Span::width);
        let label = nodes.iter().filter(with_children).map(first).max();
        let label = label.unwrap_or(0);
        let children = nodes.iter().flat_map(|node| &node.children);
        let name = children.map(first).max().unwrap_or(0);
        for node in nodes {
            if node.children.is_empty() {
                self.spans(&node.cells);
                self.end();
            }
            for (number, child) in node.children.iter().enumerate() {
                let parent = node.cells.first().filter(|_| number == 0);
                let is_marked = node.is_current && parent.is_some();
                self.text.push_str(if is_marked { "▸ " } else { "  " });
                self.padded(parent.unwrap_or(&Span::default()), label);
                for (index, cell) in child.cells.iter().enumerate() {
                    self.text.push_str(GAP);
                    if index == 0 {
                        self.padded(cell, name);
                    } else {
                        self.span(cell);
                    }
                }
                self.end();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(layout: Layout) -> Tree {
        let leaf = |name: &str, tone: Tone, state: &str| {
            Node::leaf(vec![Span::plain(name), Span::new(tone, state)])
        };
        let group = |name: &str, is_current: bool, children: Vec<Node>| Node {
            cells: vec![Span::plain(name)],
            is_current,
            children,
        };
        Tree {
            title: vec![Span::new(Tone::Title, "set shop"), Span::plain("running")],
            nodes: vec![
                group("canary", false, vec![leaf("a", Tone::Good, "done")]),
                group(
                    "rest",
                    true,
                    vec![
                        leaf("bb", Tone::Bad, "failing"),
                        leaf("c", Tone::Quiet, "waits"),
                    ],
                ),
            ],
            notes: vec![vec![Span::plain("stopped")]],
            layout,
        }
    }

    #[test]
    fn columns_have_the_parent_beside_its_first_child() {
        let expected = "\
set shop   running
  canary   a    done
▸ rest     bb   failing
           c    waits
stopped
";
        assert_eq!(tree(Layout::Columns).render(false), expected);
    }

    #[test]
    fn branches_end_where_nothing_follows() {
        let expected = "\
set shop   running
├─ canary
│  └─ a   done
└─ rest
   ├─ bb   failing
   └─ c   waits
stopped
";
        assert_eq!(tree(Layout::Branches).render(false), expected);
    }

    #[test]
    fn colours_are_around_texts_only() {
        let text = tree(Layout::Columns).render(true);
        assert!(text.starts_with("\x1b[1mset shop\x1b[0m   running\n"));
        assert!(text.contains("▸ rest     bb   \x1b[31mfailing\x1b[0m\n"));
    }
}
