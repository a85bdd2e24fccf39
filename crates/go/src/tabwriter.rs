//! `text/tabwriter`: cells that end with a tab, aligned under each other.

/// Aligns a text as Go's tabwriter does with blanks of that padding.
///
/// A cell ends with a tab. Cells of a column in lines that follow each other are as wide as the widest of
/// them, and the padding. What follows the last tab of a line is not part of a column.
///
/// ```
/// use bellwether_go::tabwriter::align;
///
/// assert_eq!(align("name:\tweb\nimage:\tnginx\n", 2), "name:   web\nimage:  nginx\n");
/// ```
pub fn align(text: &str, padding: usize) -> String {
    let mut lines: Vec<Vec<&str>> = text
        .split('\n')
        .map(|line| line.split('\t').collect())
        .collect();
    // Without a newline, nothing follows a tab at the very end: it ends no cell of a column.
    if let Some(last) = lines.last_mut()
        && last.len() > 1
        && last.last() == Some(&"")
    {
        last.pop();
    }
    let widths = widths(&lines, padding);
    let mut aligned = String::with_capacity(text.len());
    for (number, (line, widths)) in lines.iter().zip(&widths).enumerate() {
        if number > 0 {
            aligned.push('\n');
        }
        for (column, cell) in line.iter().enumerate() {
            aligned.push_str(cell);
            let width = widths.get(column).copied().unwrap_or(0);
            let blanks = width.saturating_sub(cell.chars().count());
            aligned.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    aligned
}

/// How wide the cells of each line are that end with a tab.
fn widths(lines: &[Vec<&str>], padding: usize) -> Vec<Vec<usize>> {
    let columns_of = |line: &Vec<&str>| line.len().saturating_sub(1);
    let mut widths: Vec<Vec<usize>> = lines.iter().map(|line| vec![0; columns_of(line)]).collect();
    // The lines of the present run of each column, and the widest cell in it.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for end in 0..=lines.len() {
        let open = lines.get(end).map_or(0, columns_of);
        while runs.len() > open {
            let (start, widest) = runs.pop().unwrap_or_default();
            let column = runs.len();
            for line in &mut widths[start..end] {
                line[column] = widest + padding;
            }
        }
        let Some(line) = lines.get(end) else { break };
        for (column, cell) in line.iter().take(open).enumerate() {
            let width = cell.chars().count();
            match runs.get_mut(column) {
                Some((_, widest)) => *widest = width.max(*widest),
                None => runs.push((end, width)),
            }
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_go() {
        for line in include_str!("../tests/data/tabwriter.jsonl").lines() {
            let (padding, text, expected): (usize, String, String) =
                serde_json::from_str(line).unwrap();
            assert_eq!(align(&text, padding), expected, "{line}");
        }
    }
}
