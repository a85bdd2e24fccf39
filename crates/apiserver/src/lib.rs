//! An embedded Kubernetes API server over the store
