//! The packages that templates of steps import: `vela/op`, `vela/kube` and so on.

/// Import path and source of every package.
pub const PACKAGES: &[(&str, &str)] = &[
    ("vela/builtin", include_str!("packages/builtin.cue")),
    ("vela/config", include_str!("packages/config.cue")),
    ("vela/email", include_str!("packages/email.cue")),
    ("vela/git", include_str!("packages/git.cue")),
    ("vela/http", include_str!("packages/http.cue")),
    ("vela/kube", include_str!("packages/kube.cue")),
    ("vela/metrics", include_str!("packages/metrics.cue")),
    (
        "vela/multicluster",
        include_str!("packages/multicluster.cue"),
    ),
    ("vela/oam", include_str!("packages/oam.cue")),
    ("vela/op", include_str!("packages/op.cue")),
    ("vela/ql", include_str!("packages/query.cue")),
    ("vela/query", include_str!("packages/query.cue")),
    ("vela/time", include_str!("packages/time.cue")),
    ("vela/util", include_str!("packages/util.cue")),
];
