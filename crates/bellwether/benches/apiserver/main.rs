//! What the embedded API server costs, beside a real one where `KUBEBUILDER_ASSETS` points at it.
//!
//! Prints a report in Markdown. All contenders run in one sitting, round by round in turn, since
//! the speed of a machine changes more over time than between them.

#![allow(clippy::print_stdout, reason = "the report is the purpose")]

mod contender;
#[path = "../common/embedded.rs"]
mod embedded;
mod load;
mod report;

use std::time::Duration;

use bellwether_testkit::{Assets, Usage};

use contender::Contender;
use embedded::Embedded;
use report::{Row, megabytes, milliseconds};

const ROUNDS: usize = 3;
const CLIENTS: [usize; 3] = [1, 10, 50];
/// How long an idle process is looked at.
const QUIET: Duration = Duration::from_secs(10);

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut contenders = Vec::new();
    for (name, flags) in [("durable", &[][..]), ("in memory", &["--in-memory"][..])] {
        let arguments = [&["apiserver"], flags].concat();
        contenders.push(Contender::embedded(name, &arguments).await?);
    }
    match Assets::find() {
        Ok(assets) => contenders.push(Contender::real(&assets).await?),
        Err(why) => println!("Without a real API server: {why}.\n"),
    }
    rows.push(Row::of("start to ready", &contenders, |contender| {
        milliseconds(contender.ready_after)
    }));
    rows.push(resident("memory when ready", &contenders));
    tokio::time::sleep(QUIET / 10).await;
    rows.push(idle(&contenders).await);
    for clients in CLIENTS {
        creates(&mut rows, &contenders, clients, load::CONFIG_MAPS).await?;
    }
    for contender in &contenders {
        load::define(contender).await?;
    }
    creates(&mut rows, &contenders, 50, load::SHEEP).await?;
    lists(&mut rows, &contenders).await?;
    fan_out(&mut rows, &contenders).await?;
    rows.push(resident("memory afterwards", &contenders));
    report::print(&contenders, &rows);
    drop(contenders);
    fleets().await
}

fn resident(what: &str, contenders: &[Contender]) -> Row {
    Row::of(what, contenders, |contender| {
        megabytes(contender.usage().resident)
    })
}

async fn idle(contenders: &[Contender]) -> Row {
    let before: Vec<Usage> = contenders.iter().map(Contender::usage).collect();
    tokio::time::sleep(QUIET).await;
    let mut before = before.into_iter();
    Row::of("idle, of one core", contenders, |contender| {
        let spent = contender
            .usage()
            .cpu_since(before.next().unwrap_or_default());
        format!("{:.2} %", spent.as_secs_f64() / QUIET.as_secs_f64() * 100.0)
    })
}

/// Creates per second, and what one costs on processors.
async fn creates(
    rows: &mut Vec<Row>,
    contenders: &[Contender],
    clients: usize,
    kind: load::Objects,
) -> anyhow::Result<()> {
    let count = if clients == 1 { 500 } else { 2000 };
    let mut results = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS {
        for (index, contender) in contenders.iter().enumerate() {
            let prefix = format!("c{clients}-{round}-");
            results[index].push(load::create(contender, kind, clients, count, &prefix).await?);
        }
    }
    let what = format!("{} created, {clients} clients", kind.plural);
    let median = |index: usize, value: fn(&load::Creates) -> f64| {
        report::median(&results[index].iter().map(value).collect::<Vec<_>>())
    };
    rows.push(Row::by_index(
        &format!("{what}, per s"),
        contenders,
        |index| median(index, |result| result.per_second),
    ));
    rows.push(Row::by_index(
        &format!("{what}, CPU ms each"),
        contenders,
        |index| median(index, |result| result.cpu_milliseconds),
    ));
    Ok(())
}

async fn lists(rows: &mut Vec<Row>, contenders: &[Contender]) -> anyhow::Result<()> {
    const ROUNDS: u32 = 9;
    for contender in contenders {
        load::fill(contender, 10_000).await?;
    }
    for form in load::FORMS {
        let mut results = Vec::new();
        for contender in contenders {
            results.push(load::list(contender, form, ROUNDS).await?);
        }
        let what = format!("{} of 10,000 configmaps", form.name);
        rows.push(Row::by_index(&format!("{what}, ms"), contenders, |index| {
            results[index].milliseconds
        }));
        rows.push(Row::by_index(
            &format!("{what}, CPU ms"),
            contenders,
            |index| results[index].cpu_milliseconds,
        ));
        rows.push(resident(
            &format!("memory after {}s", form.name),
            contenders,
        ));
    }
    Ok(())
}

async fn fan_out(rows: &mut Vec<Row>, contenders: &[Contender]) -> anyhow::Result<()> {
    let mut results = Vec::new();
    for contender in contenders {
        results.push(load::fan_out(contender, 100, 300).await?);
    }
    for (what, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let what = format!("100 watchers at 10,000 events/s, {what} ms");
        rows.push(Row::by_index(&what, contenders, |index| {
            report::quantile(&results[index], quantile)
        }));
    }
    Ok(())
}

/// What `up` costs, and each further member.
async fn fleets() -> anyhow::Result<()> {
    println!(
        "\n| `up` with members | ready after | memory | idle, of one core | each further member |"
    );
    println!("|---|---|---|---|---|");
    let mut first: Option<(usize, u64)> = None;
    for (members, flags) in [
        (3, &[][..]),
        (3, &["--in-memory"][..]),
        (1000, &["--in-memory"][..]),
    ] {
        let number = members.to_string();
        let arguments = [&["up", "--clusters", &number], flags].concat();
        let fleet = Embedded::start(&arguments).await?;
        tokio::time::sleep(QUIET).await;
        let before = fleet.usage();
        tokio::time::sleep(QUIET).await;
        let after = fleet.usage();
        let idle = after.cpu_since(before).as_secs_f64() / QUIET.as_secs_f64() * 100.0;
        let further = match first {
            Some((few, resident)) if members > few => {
                let each = after.resident.saturating_sub(resident) / (members - few) as u64;
                format!("{} KB", each / 1000)
            }
            _ => String::new(),
        };
        if flags.is_empty() {
            first = None;
        } else if first.is_none() {
            first = Some((members, after.resident));
        }
        let stored = if flags.is_empty() {
            "durable"
        } else {
            "in memory"
        };
        println!(
            "| {members}, {stored} | {} | {} | {idle:.2} % | {further} |",
            milliseconds(fleet.ready_after),
            megabytes(after.resident)
        );
    }
    Ok(())
}
