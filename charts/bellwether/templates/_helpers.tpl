{{- define "bellwether.labels" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "bellwether.selector" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bellwether.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}
