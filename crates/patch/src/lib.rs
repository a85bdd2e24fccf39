//! JSON, merge and strategic merge patch, server-side apply and field ownership
