{{- define "gateway.name" -}}
{{- .Values.name | default .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gateway.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "gateway.name" .) -}}
{{- end -}}

{{/* What Gateways and the Service select: these two are the user's to choose. */}}
{{- define "gateway.selectorLabels" -}}
app: {{ .Values.labels.app | default (include "gateway.name" .) | quote }}
istio: {{ .Values.labels.istio | default (include "gateway.name" . | trimPrefix "istio-") | quote }}
{{- end -}}

{{/* Those of the chart win. */}}
{{- define "gateway.labels" -}}
{{- $labels := include "gateway.selectorLabels" . | fromYaml }}
{{- $_ := set $labels "app.kubernetes.io/name" (include "gateway.name" .) }}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- with .Values.networkGateway }}
{{- $_ := set $labels "topology.istio.io/network" . }}
{{- end }}
{{- toYaml (merge $labels .Values.labels) }}
{{- end -}}

{{- define "gateway.metadata" -}}
{{- include "gateway.metadataOf" (dict "root" . "name" (include "gateway.name" .)) -}}
{{- end -}}

{{- define "gateway.metadataOf" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "gateway.labels" .root | nindent 2 }}
{{- with .root.Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
