{{/*
What all our pods have in common: the restricted profile of pod security, and nothing of Kubernetes' own inside.
*/}}

{{- define "holdshort.pod" -}}
automountServiceAccountToken: false
# Variables that Kubernetes makes of Services would be taken for settings (KAFKA_PORT, HOLDSHORT_..._HOST).
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with .Values.runAsUser }}
  runAsUser: {{ int . }}
  runAsGroup: {{ int . }}
  fsGroup: {{ int . }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "holdshort.container" -}}
image: {{ include "holdshort.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Over nodes and zones where possible: (list root component). */}}
{{- define "holdshort.spread" -}}
{{- $selector := include "holdshort.selector" . }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- end }}
