//! CUE: parse, compile once, evaluate fast, never crash

pub mod ast;
pub mod number;
pub mod token;
pub mod value;
