{{/*
What no schema of single values can refuse: values that do not fit each other. Each in a sentence.
*/}}

{{- define "holdshort.checks" -}}
{{- include "holdshort.checkTopics" . }}
{{- include "holdshort.checkAudit" . }}
{{- include "holdshort.checkStrimzi" . }}
{{- range list "gatekeeper" "router" }}
{{- include "holdshort.checkCredentials" (list $ .) }}
{{- end }}
{{- if eq .Values.topics.madeBy "job" }}
{{- include "holdshort.checkCredentials" (list $ "topics") }}
{{- end }}
{{- end }}

{{- define "holdshort.checkTopics" -}}
{{- with .Values.topics }}
{{- if gt (int .lanes) (int .partitions) }}
{{- fail (printf "topics.lanes (%d) cannot be more than topics.partitions (%d)" (int .lanes) (int .partitions)) }}
{{- end }}
{{- if gt (int .minIsr) (int .replication) }}
{{- fail (printf "topics.minIsr (%d) cannot be more than topics.replication (%d)" (int .minIsr) (int .replication)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holdshort.checkAudit" -}}
{{- if and (dig "audit" "hash_ids" false .Values.config) (not .Values.audit.existingSecret) }}
{{- fail "audit.existingSecret must name the Secret with the key that config.audit.hash_ids needs" }}
{{- end }}
{{- end }}

{{- define "holdshort.checkStrimzi" -}}
{{- $users := .Values.strimzi.users }}
{{- if and (or $users.enabled (eq .Values.topics.madeBy "strimzi")) (not .Values.strimzi.cluster) }}
{{- fail "strimzi.cluster must name the Kafka resource that KafkaTopics and KafkaUsers belong to" }}
{{- end }}
{{- if $users.enabled }}
{{- $protocol := .Values.kafka.securityProtocol }}
{{- if and (eq $users.authentication "tls") (ne $protocol "SSL") }}
{{- fail (printf "strimzi.users.authentication tls needs kafka.securityProtocol SSL, not %s" $protocol) }}
{{- end }}
{{- if and (eq $users.authentication "scram-sha-512") (not (and (hasPrefix "SASL" $protocol) (eq .Values.kafka.saslMechanism "SCRAM-SHA-512"))) }}
{{- fail "strimzi.users.authentication scram-sha-512 needs kafka.securityProtocol SASL_SSL (or SASL_PLAINTEXT) and kafka.saslMechanism SCRAM-SHA-512" }}
{{- end }}
{{- if and (eq .Values.topics.madeBy "job") (not (merge (deepCopy .Values.topics.credentials) .Values.kafka.credentials).existingSecret) }}
{{- fail "topics.credentials.existingSecret must be given: the Job runs before Strimzi has made any KafkaUser; or let topics.madeBy be strimzi" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holdshort.checkCredentials" -}}
{{- $kafka := (first .).Values.kafka }}
{{- $credentials := include "holdshort.credentials" . | fromYaml }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
{{- if not $credentials.existingSecret }}
{{- fail (printf "kafka.credentials.existingSecret (or %s.credentials.existingSecret) must be given for %s" (last .) $kafka.securityProtocol) }}
{{- end }}
{{- if and (not $credentials.username) (ne $kafka.saslMechanism "OAUTHBEARER") }}
{{- fail (printf "kafka.credentials.username (or %s.credentials.username) must be given for %s" (last .) $kafka.saslMechanism) }}
{{- end }}
{{- end }}
{{- end }}
