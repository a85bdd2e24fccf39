//! JSONPath in kubectl's dialect
