//! Processes that act on clusters for long: what `bellwether hub` and `bellwether agent` share, and the agent itself.
//!
//! | module | does |
//! |---|---|
//! | `agent` | `bellwether agent`: joins a hub, and runs the agents of a member |
//! | `member_agents` | runs the agents of works and of policies, for one member or for many |
//! | `election` | acts only while the process holds its lease |
//! | `diagnostics` | serves `/metrics`, `/healthz` and `/readyz` |
//! | `missing_rights` | reports rights that the process lacks |
//! | `pace` | limits requests |
//! | `pod` | finds the cluster that the process runs in |
//! | `signal`, `output` | ends on signals; prints lines |
//!
//! It is a crate of its own so that the code an agent runs lies together in the program: what lies between the code of other
//! commands is memory of every agent, since Linux maps the surroundings of each function that runs.

pub mod agent;
pub mod diagnostics;
pub mod election;
pub mod member_agents;
pub mod missing_rights;
pub mod output;
pub mod pace;
pub mod pod;
pub mod signal;

use std::time::Duration;

/// How long threads that still compute are waited for at the end. What they compute is for nobody any more.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a command to its end, and leaves what it has started behind.
pub fn complete(
    runtime: tokio::runtime::Runtime,
    command: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let result = runtime.block_on(command);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}
