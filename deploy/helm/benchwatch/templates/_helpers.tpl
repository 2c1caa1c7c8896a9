{{- define "benchwatch.fullname" -}}
{{- if contains "benchwatch" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-benchwatch" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "benchwatch.selector" -}}
app.kubernetes.io/name: benchwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "benchwatch.labels" -}}
{{ include "benchwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "benchwatch.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The agent's container, for the Deployment and as the sidecar of a benchmark. */}}
{{- define "benchwatch.agent" -}}
image: {{ include "benchwatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [agent, --config.file=/etc/benchwatch/benchwatch.yml, "--web.listen-address=:9838"]
ports:
  - {name: http, containerPort: 9838}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
startupProbe:
  httpGet: {path: /-/healthy, port: http}
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /-/healthy, port: http}
{{- end }}

{{- define "benchwatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "benchwatch.mounts" -}}
- {name: data, mountPath: /var/lib/benchwatch}
- {name: config, mountPath: /etc/benchwatch/benchwatch.yml, subPath: {{ .file }}}
{{- if .root.Values.secret }}
- {name: secret, mountPath: /etc/benchwatch/secrets, readOnly: true}
{{- end }}
{{- end }}

{{- define "benchwatch.volumes" -}}
- name: config
  configMap: {name: {{ include "benchwatch.fullname" . }}}
{{- with .Values.secret }}
- name: secret
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}
