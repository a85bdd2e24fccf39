//! The binary: arguments, configuration, wiring; no logic of its own.

mod adopt;
mod apiserver;
mod app;
mod apply_once;
mod backup;
mod cli;
mod cluster;
mod completion;
mod connect;
mod crds;
mod cue;
mod data;
mod definitions;
mod examples;
mod helm;
mod hub;
mod install;
mod kubeconfig;
mod kustomize;
mod logging;
mod members;
mod objects;
mod plan;
mod policy;
mod print;
mod probe;
mod render;
mod rollout;
mod scene;
mod screen;
mod status;
mod stop;
mod token;
mod up;
mod vela;
mod version;
mod webhook;
mod why;
mod workflow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let arguments = match cli::parse() {
        Ok(arguments) => arguments,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            let typed: Vec<String> = std::env::args().skip(1).collect();
            let mut message = cli::one_line(&error.to_string());
            if let Some(hint) = vela::hint(&typed) {
                message = format!("{message}; {hint}");
            }
            cli::print_error(&message);
            return std::process::ExitCode::from(2);
        }
    };
    logging::start(arguments.verbose, arguments.log_format);
    let is_server = cli::is_server(&arguments.command);
    let speaks_kubectl = cli::speaks_kubectl(&arguments.command);
    let result = cli::run(arguments.command);
    let broken = result.as_ref().err().is_some_and(cli::is_broken_pipe);
    if !is_server && (broken || cli::is_pipe_broken()) {
        // The reader has read enough, as `head` does: nothing to complain about.
        return std::process::ExitCode::from(cli::BROKEN_PIPE);
    }
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            if let (true, Some(error)) = (speaks_kubectl, error.downcast_ref()) {
                cli::print_report(error);
                return std::process::ExitCode::FAILURE;
            }
            if let Some(exit) = error.downcast_ref::<cli::ExitCode>() {
                return exit.print();
            }
            cli::print_error(&cli::chain(&error));
            std::process::ExitCode::FAILURE
        }
    }
}
