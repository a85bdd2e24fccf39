//! Flags about workflows that `hub` and `up` share.

use std::net::SocketAddr;
use std::path::PathBuf;

use bellwether_controllers::workflow::providers::http::HostPattern;
use bellwether_controllers::workflow::{ApprovalOptions, HttpPolicy, WorkflowOptions};
use bellwether_workflow::Settings;
use clap::Args;
use jiff::SignedDuration;

/// How workflows are carried out.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkflowArgs {
    /// Maximum delay, in seconds, before a waiting step is executed again. Steps that wait for
    /// objects continue as soon as these change.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    max_workflow_wait_backoff_time: u32,
    /// Maximum delay, in seconds, before a failed step is retried.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    max_workflow_failed_backoff_time: u32,
    /// How often a failed step is retried.
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_workflow_step_error_retry_times: u32,
    /// Suspend a workflow when a step has failed for good, instead of ending it.
    #[arg(long)]
    workflow_suspend_on_failure: bool,
    /// Hosts to which actions of workflows may send requests: host names, *.DOMAIN, * for all but this machine, and
    /// loopback for this machine. Link-local addresses, where clouds serve instance metadata, are never allowed.
    #[arg(
        long,
        value_name = "HOST,…",
        value_delimiter = ',',
        default_value = "*"
    )]
    workflow_http_allow: Vec<String>,
    /// Serve approvals at this address over HTTP: POST /resume/TOKEN resumes the step that the token is for.
    #[arg(long, value_name = "ADDRESS")]
    resume_listen: Option<SocketAddr>,
    /// URL at which people and programs reach --resume-listen (default: http:// and that address).
    #[arg(long, value_name = "URL", requires = "resume_listen")]
    resume_url: Option<String>,
    /// Store what every revision of an Application is rendered to in a ConfigMap that the revision names, by component.
    /// Without it, this is done only where a step of the workflow reads it.
    #[arg(long)]
    store_rendered_resources: bool,
    /// A directory of this machine with git repositories that workflows may read and push to; may be repeated. Without it
    /// only remote repositories can be used, at hosts that --workflow-http-allow permits.
    #[arg(long, value_name = "DIR")]
    git_directory: Vec<PathBuf>,
    /// Directory in which sources of templates are cached. Without it they are fetched every time.
    #[arg(long, value_name = "DIR")]
    source_cache: Option<PathBuf>,
}

impl WorkflowArgs {
    /// The options of the controllers.
    pub(crate) fn options(&self) -> anyhow::Result<WorkflowOptions> {
        let allowed = self.workflow_http_allow.iter().map(|text| text.parse());
        let allowed: Result<Vec<HostPattern>, String> = allowed.collect();
        let allowed =
            allowed.map_err(|problem| anyhow::anyhow!("--workflow-http-allow: {problem}"))?;
        Ok(WorkflowOptions {
            settings: Settings {
                max_wait_backoff: SignedDuration::from_secs(
                    self.max_workflow_wait_backoff_time.into(),
                ),
                max_failed_backoff: SignedDuration::from_secs(
                    self.max_workflow_failed_backoff_time.into(),
                ),
                max_retries: self.max_workflow_step_error_retry_times,
                suspend_on_failure: self.workflow_suspend_on_failure,
                ..Settings::default()
            },
            http: HttpPolicy { allowed },
            approval: self.resume_listen.map(|listen| ApprovalOptions {
                listen,
                url: self
                    .resume_url
                    .clone()
                    .unwrap_or_else(|| format!("http://{listen}")),
            }),
            stores_rendered: self.store_rendered_resources,
            git_directories: self.git_directory.clone(),
            source_cache: self.source_cache.clone(),
            fence: None,
            unsent: None,
        })
    }
}
