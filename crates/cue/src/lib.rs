//! CUE: parse, compile once, evaluate fast, never crash

pub mod ast;
pub mod number;
pub mod regex;
pub mod token;
pub mod value;
