{{/*
Names and labels. A name leaves room for what is put behind it: 63 characters is the limit of pods' labels.
*/}}

{{- define "holdshort.short" -}}
{{ . | replace "." "-" | trunc 41 | trimSuffix "-" }}
{{- end }}

{{- define "holdshort.name" -}}
{{ include "holdshort.short" (default .Chart.Name .Values.nameOverride) }}
{{- end }}

{{- define "holdshort.fullname" -}}
{{- $name := include "holdshort.name" . }}
{{- $default := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- include "holdshort.short" (default $default .Values.fullnameOverride) }}
{{- end }}

{{/* What never changes of a component's labels, for selectors: (list root component). */}}
{{- define "holdshort.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ include "holdshort.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{/* The labels of an object: (list root component), or (list root component its-own), which stand before those of all. */}}
{{- define "holdshort.labels" -}}
{{- $root := first . -}}
{{ include "holdshort.selector" (list $root (index . 1)) }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: holdshort
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with merge (slice . 2 | default (list dict) | first | deepCopy) $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "holdshort.serviceAccount" -}}
{{ default (ternary (include "holdshort.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "holdshort.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}
