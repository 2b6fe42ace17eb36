{{/*
How a component reaches the cluster, and who it is there: settings as variables, secrets as files.
*/}}

{{/* kafka.credentials, and what a component (gatekeeper, router, topics) says in place of them: (list root component). */}}
{{- define "holdshort.credentials" -}}
{{- $root := first . }}
{{- $component := last . }}
{{- $given := merge (deepCopy (get $root.Values $component).credentials) $root.Values.kafka.credentials }}
{{- if and $root.Values.strimzi.users.enabled (not $given.existingSecret) }}
{{- $user := include "holdshort.user" (list $root $component) }}
{{- $given = merge (dict "existingSecret" $user "username" $user) $given }}
{{- end }}
{{- toYaml $given }}
{{- end }}

{{/* The files that the security protocol asks for, as variable, key in the Secret and name: (list root component). */}}
{{- define "holdshort.secretFiles" -}}
{{- $kafka := (first .).Values.kafka }}
{{- $credentials := include "holdshort.credentials" . | fromYaml }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
{{- if eq $kafka.saslMechanism "OAUTHBEARER" }}
- {variable: KAFKA_SASL_OAUTH_TOKEN_FILE, key: {{ $credentials.tokenKey | quote }}, path: token}
{{- else }}
- {variable: KAFKA_SASL_PASSWORD_FILE, key: {{ $credentials.passwordKey | quote }}, path: password}
{{- end }}
{{- else if and (eq $kafka.securityProtocol "SSL") $credentials.existingSecret }}
- {variable: KAFKA_SSL_CERT_FILE, key: {{ $credentials.certificateKey | quote }}, path: client.crt}
- {variable: KAFKA_SSL_KEY_FILE, key: {{ $credentials.privateKeyKey | quote }}, path: client.key}
{{- with $credentials.privateKeyPasswordKey }}
- {variable: KAFKA_SSL_KEY_PASSWORD_FILE, key: {{ . | quote }}, path: client.key.password}
{{- end }}
{{- end }}
{{- end }}

{{/* Every setting of a component: (list root component). */}}
{{- define "holdshort.environment" -}}
{{- $root := first . }}
{{- with $root.Values.kafka -}}
- {name: KAFKA_BOOTSTRAP_SERVERS, value: {{ .bootstrapServers | quote }}}
- {name: KAFKA_SECURITY_PROTOCOL, value: {{ .securityProtocol }}}
{{- if hasPrefix "SASL" .securityProtocol }}
- {name: KAFKA_SASL_MECHANISM, value: {{ .saslMechanism }}}
{{- with (include "holdshort.credentials" $ | fromYaml).username }}
- {name: KAFKA_SASL_USERNAME, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- if and (hasSuffix "SSL" .securityProtocol) .ca.existingSecret }}
- {name: KAFKA_SSL_CA_FILE, value: /etc/holdshort/authority/ca.crt}
{{- end }}
{{- end }}
{{- range include "holdshort.secretFiles" . | fromYamlArray }}
- {name: {{ .variable }}, value: /etc/holdshort/credentials/{{ .path }}}
{{- end }}
{{- if include "holdshort.auditKey" . }}
- {name: HOLDSHORT_AUDIT_KEY_FILE, value: /etc/holdshort/audit/audit.key}
{{- end }}
- {name: HOLDSHORT_CONFIG, value: /etc/holdshort/config/holdshort.yaml}
- {name: HOLDSHORT_LOG_LEVEL, value: {{ $root.Values.logLevel }}}
{{- with $root.Values.topics }}
- {name: HOLDSHORT_PREFIX, value: {{ .prefix | quote }}}
- {name: HOLDSHORT_PARTITIONS, value: {{ .partitions | int | quote }}}
- {name: HOLDSHORT_LANES, value: {{ .lanes | int | quote }}}
- {name: HOLDSHORT_REPLICATION, value: {{ .replication | int | quote }}}
- {name: HOLDSHORT_MIN_ISR, value: {{ .minIsr | int | quote }}}
{{- end }}
{{- end }}

{{/* Whether a component needs the key for names in the audit, as "yes" or nothing: (list root component). */}}
{{- define "holdshort.auditKey" -}}
{{- if and (first .).Values.audit.existingSecret (ne (last .) "topics") }}yes{{ end }}
{{- end }}

{{- define "holdshort.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: config, mountPath: /etc/holdshort/config, readOnly: true}
{{- if include "holdshort.secretFiles" . }}
- {name: credentials, mountPath: /etc/holdshort/credentials, readOnly: true}
{{- end }}
{{- if include "holdshort.auditKey" . }}
- {name: audit, mountPath: /etc/holdshort/audit, readOnly: true}
{{- end }}
{{- with (first .).Values.kafka }}
{{- if and (hasSuffix "SSL" .securityProtocol) .ca.existingSecret }}
- {name: authority, mountPath: /etc/holdshort/authority, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{/* What is mounted: (list root component name-of-the-ConfigMap). */}}
{{- define "holdshort.volumes" -}}
{{- $whose := initial . -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
- name: config
  configMap: {name: {{ last . | quote }}}
{{- with include "holdshort.secretFiles" $whose | fromYamlArray }}
- name: credentials
  secret:
    secretName: {{ (include "holdshort.credentials" $whose | fromYaml).existingSecret | quote }}
    defaultMode: 0440
    items:
      {{- range . }}
      - {key: {{ .key | quote }}, path: {{ .path }}}
      {{- end }}
{{- end }}
{{- if include "holdshort.auditKey" $whose }}
{{- with (first .).Values.audit }}
- name: audit
  secret:
    secretName: {{ .existingSecret | quote }}
    defaultMode: 0440
    items:
      - {key: {{ .key | quote }}, path: audit.key}
{{- end }}
{{- end }}
{{- with (first .).Values.kafka }}
{{- if and (hasSuffix "SSL" .securityProtocol) .ca.existingSecret }}
- name: authority
  secret:
    secretName: {{ .ca.existingSecret | quote }}
    items:
      - {key: {{ .ca.key | quote }}, path: ca.crt}
{{- end }}
{{- end }}
{{- end }}
