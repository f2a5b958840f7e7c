{{- define "ackscope.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ackscope.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ackscope.labels" -}}
{{ include "ackscope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ackscope.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-data" (include "ackscope.name" .)) }}
{{- end }}

{{/* What every pod of the chart has. */}}
{{- define "ackscope.pod" -}}
serviceAccountName: {{ include "ackscope.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.images.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}{{ end }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ackscope.container" -}}
imagePullPolicy: {{ .Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* With ReadWriteOnce, pods that use the data run where the exporter runs. */}}
{{- define "ackscope.nearExporter" -}}
{{- if and .Values.persistence.enabled (eq .Values.persistence.accessMode "ReadWriteOnce") }}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "ackscope.selector" . | nindent 12 }}
            app.kubernetes.io/component: exporter
{{- end }}
{{- end }}

{{- define "ackscope.dataVolumes" -}}
- name: tmp
  emptyDir: {}
- name: data
{{- if .Values.persistence.enabled }}
  persistentVolumeClaim: {claimName: {{ include "ackscope.claim" . }}}
{{- else }}
  emptyDir: {}
{{- end }}
{{- end }}

{{- define "ackscope.dataMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /var/lib/ackscope}
{{- end }}

{{/* The configuration of the exporter: clusters with the files of their secrets, and what `config` adds. */}}
{{- define "ackscope.config" -}}
{{- $clusters := dict }}
{{- range $name, $cluster := .Values.clusters }}
{{- $trust := dict }}
{{- if $cluster.caSecret }}{{ $trust = dict "ca_file" (printf "/etc/ackscope/secrets/%s/ca/ca.crt" $name) }}{{ end }}
{{- $made := dict }}
{{- range $side := list "management" "amqp" }}
{{- with index $cluster $side }}
{{- $access := dict "url" .url "password_file" (printf "/etc/ackscope/secrets/%s/%s/password" $name $side) }}
{{- $made = set $made $side (merge $access $trust) }}
{{- end }}
{{- end }}
{{- $clusters = set $clusters $name $made }}
{{- end }}
{{- $own := dict "clusters" $clusters "landing" (dict "directory" "/var/lib/ackscope/landing") "history" (dict "rollups" "/var/lib/ackscope/rollups") "triage" (dict "file" "/var/lib/ackscope/triage.json") }}
{{- with .Values.discovery }}
{{- if .enabled }}
{{- $found := dict "enabled" true "probes" .probes "full_names" .fullNames "label_selector" .labelSelector }}
{{- if not .allNamespaces }}{{ $found = set $found "namespaces" (.namespaces | default (list $.Release.Namespace)) }}{{ end }}
{{- if .caSecret }}{{ $found = set $found "ca_file" "/etc/ackscope/secrets/discovery/ca.crt" }}{{ end }}
{{- $own = set $own "discovery" (dict "kubernetes" $found) }}
{{- end }}
{{- end }}
{{- if .Values.config.delivery }}{{ $own = set $own "delivery" (dict "directory" "/var/lib/ackscope/delivery") }}{{ end }}
{{- mergeOverwrite $own .Values.config | toYaml }}
{{- end }}
