//! CUE: parse, compile once, evaluate fast, never crash

pub mod ast;
pub mod builtins;
pub mod cli;
pub mod compile;
pub mod diagnostic;
mod eval;
pub mod excerpt;
pub mod format;
pub mod host;
pub mod ir;
pub mod label;
mod lexer;
pub mod number;
pub mod parser;
pub mod patch;
pub mod probe;
mod quick;
pub mod regex;
pub mod score;
pub mod token;
pub mod value;
