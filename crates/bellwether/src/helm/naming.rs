//! The name of a release: given, made up, or by a template.

use anyhow::bail;
use bellwether_template::{Budget, Functions, Options, Rendered, Set, Value, World};

/// A name that no release had before: that of the chart, and the second.
pub(super) fn generated(chart: &str, world: &World<'_>) -> String {
    format!("{chart}-{}", world.now.as_second())
}

/// The name that a template gives.
pub(super) fn from_template(text: &str, world: &World<'_>) -> anyhow::Result<String> {
    let mut set = Set::new(Options::new(Functions::sprig()));
    set.add("name-template", text)?;
    let rendered = set.render("name-template", &Value::Nil, world, &mut Budget::default())?;
    match rendered {
        Rendered::Text(name) => Ok(String::from_utf8(name)?),
        Rendered::Needs(_) => bail!("--name-template cannot look anything up"),
    }
}
