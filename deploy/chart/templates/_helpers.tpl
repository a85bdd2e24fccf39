{{- define "bellwether.labels" -}}
{{ include "bellwether.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: bellwether
{{- end }}

{{- define "bellwether.selector" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- end }}

{{- define "bellwether.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- /* Names of objects that belong to no namespace. */}}
{{- define "bellwether.clusterName" -}}
{{ .Release.Name }}-{{ .Release.Namespace }}
{{- end }}

{{- define "bellwether.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "bellwether.hasWebhooks" -}}
{{ if and (eq .Values.mode "hub") .Values.webhooks.enabled }}true{{ end }}
{{- end }}

{{- define "bellwether.aggregationLabel" -}}
{{ .Values.execution.aggregationLabel | default (ternary "bellwether.dev/aggregate-to-hub" "open-cluster-management.io/aggregate-to-work" (eq .Values.mode "hub")) }}
{{- end }}

{{- /* The names of the parts of files/rights.yaml whose rights are needed, as a YAML list. */}}
{{- define "bellwether.parts" -}}
{{- $parts := list }}
{{- if eq .Values.mode "agent" }}
{{- $parts = list "agent" }}
{{- if .Values.createDefinitions }}{{ $parts = append $parts "member-definitions" }}{{ end }}
{{- else }}
{{- $all := keys ((.Files.Get "files/rights.yaml" | fromYaml).controllers) | sortAlpha }}
{{- $on := list }}
{{- $off := list }}
{{- range .Values.controllers }}
{{- if hasPrefix "-" . }}{{ $off = append $off (trimPrefix "-" .) }}{{ else if ne . "*" }}{{ $on = append $on . }}{{ end }}
{{- end }}
{{- range concat $on $off }}
{{- if not (has . $all) }}{{ fail (printf "there is no controller %q: controllers are %s" . (join ", " $all)) }}{{ end }}
{{- end }}
{{- if or (not $on) (has "*" .Values.controllers) }}{{ $on = $all }}{{ end }}
{{- range $on }}
{{- if not (has . $off) }}{{ $parts = append $parts (printf "controllers/%s" .) }}{{ end }}
{{- end }}
{{- if .Values.createDefinitions }}{{ $parts = append $parts "definitions" }}{{ end }}
{{- if .Values.webhooks.enabled }}{{ $parts = append $parts "webhooks" }}{{ end }}
{{- end }}
{{- toYaml $parts }}
{{- end }}

{{- /* Rules of the parts that are needed in the namespace of the system, as a YAML list. */}}
{{- define "bellwether.systemRules" -}}
{{- $system := (.Files.Get "files/rights.yaml" | fromYaml).system }}
{{- $verbs := list }}
{{- range include "bellwether.parts" . | fromYamlArray }}
{{- range get $system.parts (trimPrefix "controllers/" .) | default list }}
{{- if ne (first .resources) "secrets" }}{{ fail "only rights to secrets are limited to a namespace" }}{{ end }}
{{- $verbs = concat $verbs .verbs | uniq | sortAlpha }}
{{- end }}
{{- end }}
{{- with $verbs }}
- apiGroups: [""]
  resources: ["secrets"]
  verbs: [{{ join ", " . }}]
{{- end }}
{{- end }}

{{- /* Rules of the parts that are needed, each resource once. */}}
{{- define "bellwether.rules" -}}
{{- $rights := .Files.Get "files/rights.yaml" | fromYaml }}
{{- $verbs := dict }}
{{- range include "bellwether.parts" . | fromYamlArray }}
{{- $rules := list }}
{{- if hasPrefix "controllers/" . }}{{ $rules = index $rights.controllers (trimPrefix "controllers/" .) }}{{ else }}{{ $rules = index $rights.parts . }}{{ end }}
{{- range $rule := $rules }}
{{- range $rule.resources }}
{{- $key := printf "%s/%s" (first $rule.apiGroups) . }}
{{- if or $.Values.execution.readAll (ne $key "*/*") }}
{{- $_ := set $verbs $key (concat (get $verbs $key | default list) $rule.verbs | uniq | sortAlpha) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $key := keys $verbs | sortAlpha }}
{{- $parts := splitn "/" 2 $key }}
- apiGroups: [{{ $parts._0 | quote }}]
  resources: [{{ $parts._1 | quote }}]
  verbs: [{{ join ", " (get $verbs $key) }}]
{{- end }}
{{- end }}
