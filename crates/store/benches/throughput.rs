//! How many objects a second clients can create, and what one costs in processor time.
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

fn main() {
    println!("engine   clients     writes/s   latency µs   processor µs/write");
    for (engine, writes) in [("memory", 200_000), ("disk", 20_000)] {
        for clients in [1, 10, 50] {
            let writes = if engine == "disk" && clients == 1 {
                writes / 10
            } else {
                writes
            };
            let directory = tempfile::tempdir().unwrap();
            let store = match engine {
                "memory" => Store::in_memory(Options::default()),
                _ => Store::open(directory.path(), Options::default()).unwrap(),
            };
            let measured = measure(store, clients, writes);
            let per_write = measured.elapsed.as_secs_f64() / writes as f64;
            println!(
                "{engine:8} {clients:7} {:12.0} {:12.1} {:20}",
                1.0 / per_write,
                per_write * clients as f64 * 1e6,
                measured.processor.map_or("unknown".to_owned(), |time| {
                    format!("{:.1}", time.as_secs_f64() * 1e6 / writes as f64)
                }),
            );
        }
    }
}

struct Measured {
    elapsed: Duration,
    processor: Option<Duration>,
}

fn measure(store: Store<Bytes>, clients: usize, writes: usize) -> Measured {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let keyspace = store.keyspace("hub");
    let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
    let next = Arc::new(AtomicUsize::new(0));
    let before = processor_time();
    let start = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (keyspace, value, next) = (keyspace.clone(), value.clone(), Arc::clone(&next));
            runtime.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= writes {
                        return;
                    }
                    let key = format!("/apps/deployments/default/app-{number:08}");
                    let value = value.clone();
                    let written = keyspace.put(&key, Expected::Absent, |_| value).await;
                    written.unwrap();
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    let elapsed = start.elapsed();
    let processor = processor_time()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before));
    runtime.block_on(store.close());
    Measured { elapsed, processor }
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
