//! CEL as Kubernetes speaks it: parse, check, evaluate under a budget
