//! The binary: arguments, configuration, wiring; no logic of its own.

mod agent;
mod apiserver;
mod cli;
mod cluster;
mod connect;
mod crds;
mod cue;
mod data;
mod diagnostics;
mod election;
mod hub;
mod kubeconfig;
mod kustomize;
mod logging;
mod members;
mod objects;
mod plan;
mod print;
mod probe;
mod scene;
mod status;
mod token;
mod up;
mod why;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            cli::print_error(&cli::one_line(&error.to_string()));
            return std::process::ExitCode::from(2);
        }
    };
    logging::start(arguments.verbose, arguments.log_format);
    let speaks_kubectl = cli::speaks_kubectl(&arguments.command);
    match cli::run(arguments.command) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            if let (true, Some(error)) = (speaks_kubectl, error.downcast_ref()) {
                cli::print_report(error);
                return std::process::ExitCode::FAILURE;
            }
            cli::print_error(&cli::chain(&error));
            std::process::ExitCode::FAILURE
        }
    }
}
