{{/*
Where our pods may go: name resolution, and the brokers.
*/}}

{{- define "holdshort.egress" -}}
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - {protocol: UDP, port: {{ int . }}}
    - {protocol: TCP, port: {{ int . }}}
    {{- end }}
- ports:
    {{- range default (include "holdshort.kafkaPorts" . | fromJsonArray) .Values.networkPolicy.kafkaPorts }}
    - {protocol: TCP, port: {{ int . }}}
    {{- end }}
  {{- with .Values.networkPolicy.kafkaTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The ports of the bootstrap servers, as JSON. */}}
{{- define "holdshort.kafkaPorts" -}}
{{- $ports := list }}
{{- range splitList "," .Values.kafka.bootstrapServers }}
{{- $ports = append $ports (splitList ":" . | last | int) }}
{{- end }}
{{- $ports | uniq | toJson }}
{{- end }}
