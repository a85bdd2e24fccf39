//! `bellwether helm show`: parts of a chart as they are.

use anyhow::Context as _;
use bellwether_helm::Chart;
use bellwether_jsonpath::JsonPath;
use clap::ValueEnum;
use serde_json::Value;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Chart.yaml, values.yaml, the readme and the definitions
    All,
    /// Chart.yaml
    Chart,
    /// values.yaml
    Values,
    /// The readme
    Readme,
    /// The definitions in crds/
    Crds,
}

/// The text of a part, as Helm lays it out: each file ends with a blank line, and `---` is between the
/// parts of all.
pub(super) fn text(part: Part, path: Option<&str>, chart: &Chart) -> anyhow::Result<String> {
    let is_all = part == Part::All;
    let mut text = String::new();
    let mut add = |is_separated: bool, content: &str| {
        if is_all && is_separated {
            text.push_str("---\n");
        }
        text.push_str(content);
        text.push('\n');
    };
    if is_all || part == Part::Chart {
        let metadata = serde_json::to_value(&chart.metadata)?;
        add(false, &bellwether_json::yaml::to_yaml(&metadata));
    }
    if is_all || part == Part::Values {
        match path {
            Some(path) => return selected(path, chart),
            None => add(true, &chart.values_text),
        }
    }
    if is_all || part == Part::Readme {
        let readme = chart.files.iter().find(|file| is_readme(&file.name));
        if let Some(file) = readme {
            add(true, &String::from_utf8_lossy(&file.data));
        }
    }
    if is_all || part == Part::Crds {
        for (index, (_, file)) in chart.crds().iter().enumerate() {
            let content = String::from_utf8_lossy(&file.data);
            add(index == 0 && !content.starts_with("---"), &content);
        }
    }
    Ok(text)
}

/// The default values that a JSONPath finds.
fn selected(path: &str, chart: &Chart) -> anyhow::Result<String> {
    let path = JsonPath::parse(path).with_context(|| format!("--jsonpath {path}"))?;
    let text = path.render(&Value::Object(chart.values.clone()))?;
    Ok(text)
}

fn is_readme(name: &str) -> bool {
    let known = ["readme.md", "readme.txt", "readme"];
    known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
            ("values.yaml", "b: {c: [1, 2]}\n"),
            ("README.md", "hi\n"),
            ("crds/a.yaml", "kind: A\n"),
            ("crds/b.yaml", "---\nkind: B\n"),
        ];
        Chart::from_directory(files).unwrap()
    }

    #[test]
    fn parts_are_laid_out_as_in_helm() {
        let shown = |part| text(part, None, &chart()).unwrap();
        assert_eq!(shown(Part::Crds), "kind: A\n\n---\nkind: B\n\n");
        assert_eq!(
            shown(Part::All),
            "apiVersion: v2\nname: a\nversion: 1.0.0\n\n---\nb: {c: [1, 2]}\n\n---\nhi\n\n---\nkind: A\n\n---\nkind: \
             B\n\n"
        );
    }

    #[test]
    fn values_are_chosen_by_a_path() {
        let shown = text(Part::Values, Some("{.b.c}"), &chart()).unwrap();
        assert_eq!(shown, "[1,2]");
        assert!(text(Part::Values, Some("{.b"), &chart()).is_err());
    }
}
