{{/*
The table of topics and rights (files/table.yaml, made from the code), with the names of this release in it.
*/}}

{{- define "holdshort.table" -}}
{{ .Files.Get "files/table.yaml" }}
{{- end }}

{{/* What stands for {agent}, {team} and {prefix}, as JSON. */}}
{{- define "holdshort.names" -}}
{{- $config := .Values.config }}
{{- $agents := (include "holdshort.table" . | fromYaml).agents }}
{{- if hasKey $config "agents" }}
{{- $agents = keys $config.agents | sortAlpha }}
{{- end }}
{{- dict "agent" $agents "team" (keys ($config.teams | default dict) | sortAlpha) "prefix" .Values.topics.prefix | toJson }}
{{- end }}

{{/* A list of texts: `text` once for each agent if `by` holds {agent}, each team likewise, else as it is: (dict names by text). */}}
{{- define "holdshort.each" -}}
{{- $texts := list .text }}
{{- range $kind := list "agent" "team" }}
{{- $place := printf "{%s}" $kind }}
{{- if contains $place $.by }}
{{- $texts = list }}
{{- range $name := get $.names $kind }}
{{- $texts = append $texts (replace $place $name $.text) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $texts }}
- {{ . | replace "{prefix}" $.names.prefix | quote }}
{{- end }}
{{- end }}

{{/* Every topic: name, partitions and config. */}}
{{- define "holdshort.topics" -}}
{{- $names := include "holdshort.names" . | fromJson }}
{{- range $row := (include "holdshort.table" . | fromYaml).topics }}
{{- range $name := include "holdshort.each" (dict "names" $names "by" $row.name "text" $row.name) | fromYamlArray }}
- name: {{ $name | quote }}
  partitions: {{ ternary $.Values.topics.lanes $.Values.topics.partitions (eq $row.partitions "lanes") | int }}
  config:
    {{- merge (dict "min.insync.replicas" ($.Values.topics.minIsr | int | toString)) $row.config | toYaml | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Every principal with its spec; nobody needs the right to make topics where Strimzi makes them. */}}
{{- define "holdshort.principals" -}}
{{- $names := include "holdshort.names" . | fromJson }}
{{- range $row := (include "holdshort.table" . | fromYaml).principals }}
{{- if not (and (eq $row.name "admin") (eq $.Values.topics.madeBy "strimzi")) }}
{{- range $text := include "holdshort.each" (dict "names" $names "by" $row.name "text" ($row | toJson)) | fromYamlArray }}
{{- $principal := $text | fromJson }}
- name: {{ $principal.name | quote }}
  {{- with $principal.quotas }}
  quotas: {{ toJson . }}
  {{- end }}
  acls:
    {{- range $right := $principal.acls }}
    {{- range include "holdshort.each" (dict "names" $names "by" $right.resource.name "text" ($right | toJson)) | fromYamlArray }}
    - {{ . }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of a principal's KafkaUser, and of the Secret that Strimzi makes for it: (list root principal). */}}
{{- define "holdshort.user" -}}
{{ (first .).Values.topics.prefix | replace "." "-" }}{{ last . }}
{{- end }}
