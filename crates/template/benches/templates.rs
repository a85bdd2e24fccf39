//! What parsing and rendering cost.

use bellwether_template::{Budget, Functions, NOWHERE, Options, Set, Value};
use serde_json::json;

fn main() {
    divan::main();
}

/// A deployment as charts write it: labels, loops, defaults and indentation.
const DEPLOYMENT: &str = r#"{{- define "name" -}}{{ .Values.name | default "app" | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- define "labels" }}
app.kubernetes.io/name: {{ template "name" . }}
app.kubernetes.io/version: {{ .Values.version | quote }}
{{- range $key, $value := .Values.labels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ template "name" . }}
  labels: {{- template "labels" . }}
spec:
  replicas: {{ .Values.replicas }}
  template:
    spec:
      containers:
      {{- range $i, $c := .Values.containers }}
      - name: {{ $c.name | quote }}
        image: "{{ $c.image.repository }}:{{ $c.image.tag | default $.Values.version }}"
        {{- with $c.env }}
        env:
        {{- range . }}
        - name: {{ .name | upper | replace "-" "_" }}
          value: {{ printf "%v-%d" .value $i | quote }}
        {{- end }}
        {{- end }}
        {{- if and $c.port (ne $c.port 0.0) }}
        ports: [{containerPort: {{ int $c.port }}}]
        {{- end }}
      {{- end }}
"#;

fn values(containers: usize) -> Value {
    let container = |index: usize| {
        json!({
            "name": format!("c{index}"), "port": 8080 + index,
            "image": {"repository": "registry.example/app"},
            "env": [{"name": "log-level", "value": "info"}, {"name": "mode", "value": index}],
        })
    };
    Value::from_json(&json!({"Values": {
        "name": "shop", "version": "1.2.3", "replicas": 3,
        "labels": {"team": "core", "tier": "web"},
        "containers": (0..containers).map(container).collect::<Vec<_>>(),
    }}))
}

fn set() -> Set {
    let mut set = Set::new(Options::new(Functions::sprig()));
    // The template above parses.
    let _ = set.add("deployment", DEPLOYMENT);
    set
}

#[divan::bench]
fn parse(bencher: divan::Bencher<'_, '_>) {
    bencher.bench(set);
}

#[divan::bench(args = [1, 10, 100])]
fn render(bencher: divan::Bencher<'_, '_>, containers: usize) {
    let (set, values) = (set(), values(containers));
    bencher.bench(|| set.render("deployment", &values, &NOWHERE, &mut Budget::default()));
}
