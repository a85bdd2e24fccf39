//! CUE: parse, compile once, evaluate fast, never crash
