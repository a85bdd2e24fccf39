//! How many writes a second clients get done, and what one costs in processor time.
//!
//! A plain program rather than a microbenchmark: what matters is many clients at once, and the
//! time of all threads, not only of the one that asks.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time, prints it, and may fail"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bellwether_store::{Expected, Options, Store};
use bytes::Bytes;

/// About the size of a Deployment.
const VALUE_BYTES: usize = 2048;

/// How many watches of other prefixes there are in the runs that have some.
const WATCHES: usize = 10_000;

/// How many keys the runs that update write to, again and again.
const UPDATED_KEYS: usize = 1000;

/// One line of the report.
struct Run {
    durable: bool,
    clients: usize,
    writes: usize,
    watches: usize,
    update: bool,
}

fn main() {
    // First, while there is no free memory left over from anything else.
    report_idle_keyspaces();
    println!("engine  operation  watches  clients    writes/s   latency µs   processor µs/write");
    for durable in [false, true] {
        for clients in [1, 10, 50] {
            let writes = match (durable, clients) {
                (false, _) => 200_000,
                (true, 1) => 2_000,
                (true, _) => 20_000,
            };
            let create = Run {
                durable,
                clients,
                writes,
                watches: 0,
                update: false,
            };
            create.report();
            Run {
                update: true,
                ..create
            }
            .report();
        }
        let writes = if durable { 20_000 } else { 200_000 };
        let watched = Run {
            durable,
            clients: 10,
            writes,
            watches: WATCHES,
            update: false,
        };
        watched.report();
    }
    report_opening();
}

impl Run {
    fn report(&self) {
        let directory = tempfile::tempdir().unwrap();
        let store = if self.durable {
            Store::open(directory.path(), Options::default()).unwrap()
        } else {
            Store::in_memory(Options::default())
        };
        let keyspace = store.keyspace("hub");
        let watch = |number| keyspace.watch(&format!("/core/pods/{number}/"), keyspace.revision());
        let watches: Vec<_> = (0..self.watches)
            .map(|number| watch(number).unwrap())
            .collect();
        let measured = self.measure(&store);
        drop(watches);
        let per_write = measured.elapsed.as_secs_f64() / self.writes as f64;
        println!(
            "{:7} {:9} {:8} {:8} {:11.0} {:12.1} {:>20}",
            if self.durable { "disk" } else { "memory" },
            if self.update { "update" } else { "create" },
            self.watches,
            self.clients,
            1.0 / per_write,
            per_write * self.clients as f64 * 1e6,
            measured.processor.map_or("unknown".to_owned(), |time| {
                format!("{:.1}", time.as_secs_f64() * 1e6 / self.writes as f64)
            }),
        );
    }

    fn measure(&self, store: &Store<Bytes>) -> Measured {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
        let next = Arc::new(AtomicUsize::new(0));
        let before = processor_time();
        let start = Instant::now();
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..self.clients {
            let (keyspace, value, next) = (store.keyspace("hub"), value.clone(), next.clone());
            let (writes, update) = (self.writes, self.update);
            let client = async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= writes {
                        return;
                    }
                    let (number, expected) = if update {
                        (number % UPDATED_KEYS, Expected::Any)
                    } else {
                        (number, Expected::Absent)
                    };
                    let key = format!("/apps/deployments/default/app-{number:08}");
                    let value = value.clone();
                    keyspace.put(&key, expected, |_| value).await.unwrap();
                }
            };
            clients.spawn_on(client, runtime.handle());
        }
        runtime.block_on(clients.join_all());
        let elapsed = start.elapsed();
        let spent = processor_time().zip(before);
        runtime.block_on(store.clone().close());
        Measured {
            elapsed,
            processor: spent.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}

struct Measured {
    elapsed: Duration,
    processor: Option<Duration>,
}

fn report_opening() {
    let directory = tempfile::tempdir().unwrap();
    let run = Run {
        durable: true,
        clients: 50,
        writes: 20_000,
        watches: 0,
        update: false,
    };
    run.measure(&Store::open(directory.path(), Options::default()).unwrap());
    let before = processor_time();
    let start = Instant::now();
    let store: Store<Bytes> = Store::open(directory.path(), Options::default()).unwrap();
    let elapsed = start.elapsed();
    let objects = run.writes;
    print!("opening a directory with {objects} objects takes {elapsed:.1?}");
    match processor_time().zip(before) {
        Some((after, before)) => {
            println!(", {:.1?} of processor time", after.saturating_sub(before));
        }
        None => println!(),
    }
    drop(store);
}

fn report_idle_keyspaces() {
    const KEYSPACES: usize = 100_000;
    let store: Store<Bytes> = Store::in_memory(Options::default());
    let before = resident_bytes();
    for number in 0..KEYSPACES {
        store.keyspace(&format!("cluster{number}"));
    }
    if let Some((after, before)) = resident_bytes().zip(before) {
        println!(
            "an idle keyspace takes {} bytes",
            after.saturating_sub(before) / KEYSPACES
        );
    }
}

/// What the threads of this process have used so far, where the system tells.
fn processor_time() -> Option<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let schedule = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += schedule.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanoseconds))
}

/// How much memory this process takes, where the system tells.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
