//! The report: one row a measurement, one column a contender, and the ratio to the real one.

use std::time::Duration;

use crate::contender::Contender;

/// One measurement of all contenders.
pub(crate) struct Row {
    what: String,
    cells: Vec<String>,
}

impl Row {
    pub(crate) fn of(
        what: &str,
        contenders: &[Contender],
        cell: impl FnMut(&Contender) -> String,
    ) -> Self {
        Self {
            what: what.to_owned(),
            cells: contenders.iter().map(cell).collect(),
        }
    }

    /// A row of figures, with the ratio to the last contender where there is a real one.
    pub(crate) fn by_index(
        what: &str,
        contenders: &[Contender],
        value: impl Fn(usize) -> f64,
    ) -> Self {
        let values: Vec<f64> = (0..contenders.len()).map(value).collect();
        let real = contenders.iter().position(|contender| contender.is_real);
        let cell = |(index, value): (usize, &f64)| {
            let figure = figure(*value);
            match real {
                Some(real) if real != index && values[real] > 0.0 && *value > 0.0 => {
                    format!("{figure} ({:.2}×)", value / values[real])
                }
                _ => figure,
            }
        };
        Self {
            what: what.to_owned(),
            cells: values.iter().enumerate().map(cell).collect(),
        }
    }
}

pub(crate) fn print(contenders: &[Contender], rows: &[Row]) {
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name).collect();
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for row in rows {
        println!("| {} | {} |", row.what, row.cells.join(" | "));
    }
}

/// Three digits that matter.
fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a short list"
    )]
    let index = (sorted.len() as f64 * part) as usize;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}
