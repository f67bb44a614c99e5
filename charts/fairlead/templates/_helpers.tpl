{{/* Name of what the release makes in its namespace. */}}
{{- define "fairlead.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of what it makes for the whole cluster, where releases of other namespaces make theirs. */}}
{{- define "fairlead.clusterName" -}}
{{- printf "%s-%s" (include "fairlead.name" .) .Release.Namespace -}}
{{- end -}}

{{- define "fairlead.rootNamespace" -}}
{{- .Values.rootNamespace | default .Release.Namespace -}}
{{- end -}}

{{/* The same for all releases: its holder writes the conditions of the cluster. */}}
{{- define "fairlead.leaseName" -}}
fairlead
{{- end -}}

{{- define "fairlead.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.revisionOrDefault" -}}
{{- .Values.revision | default "default" -}}
{{- end -}}

{{- define "fairlead.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "fairlead.name" .) -}}
{{- end -}}

{{/* Annotations of what outlives the release. Argo CD takes the first for its own deletion, and the second for pruning. */}}
{{- define "fairlead.kept" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false
{{- end -}}

{{/* An image, of the values `image` under `path`; `name` is what it is called under global.hub. */}}
{{- define "fairlead.image" -}}
{{- $global := .root.Values.global | default dict }}
{{- $repository := .image.repository }}
{{- if not $repository }}
{{- if not $global.hub }}
{{- fail (printf "%s.repository is not set, nor is global.hub: say where the images are that `make image` has built" .path) }}
{{- end }}
{{- $repository = printf "%s/%s" (trimSuffix "/" $global.hub) .name }}
{{- end }}
{{- if .image.digest -}}
{{ $repository }}@{{ .image.digest }}
{{- else -}}
{{ $repository }}:{{ .image.tag | default (toString ($global.tag | default .root.Chart.AppVersion)) }}
{{- end }}
{{- end -}}

{{/* Secrets that pull images: those of the values, and those that global names. As JSON. */}}
{{- define "fairlead.imagePullSecrets" -}}
{{- $secrets := .secrets }}
{{- range dig "imagePullSecrets" list (.root.Values.global | default dict) }}
{{- $secrets = append $secrets (dict "name" .) }}
{{- end }}
{{- $secrets | uniq | toJson }}
{{- end -}}

{{/* The mesh config of this release. */}}
{{- define "fairlead.meshConfig" -}}
istio{{ with .Values.revision }}{{ if ne . "default" }}-{{ . }}{{ end }}{{ end }}
{{- end -}}

{{/* Those of the chart win. istioctl finds a control plane by its revision, which is `default` where it has none. */}}
{{- define "fairlead.labels" -}}
{{- $labels := include "fairlead.selectorLabels" . | fromYaml }}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- $_ := set $labels "istio.io/rev" (include "fairlead.revisionOrDefault" .) }}
{{- toYaml (merge $labels .Values.labels) }}
{{- end -}}

{{/* DNS names of the Services, as proxies dial them. */}}
{{- define "fairlead.secureNames" -}}
{{- $names := list }}
{{- range compact (list (include "fairlead.name" .) .Values.service.alias) | uniq }}
{{- $names = concat $names (list (printf "%s.%s.svc" . $.Release.Namespace) (printf "%s.%s" . $.Release.Namespace)) }}
{{- end }}
{{- join "," $names }}
{{- end }}

{{/* Names of what tells the API server to ask. */}}
{{- define "fairlead.injectionWebhook" -}}
{{- printf "%s-injection" (include "fairlead.clusterName" .) -}}
{{- end -}}

{{- define "fairlead.validationWebhook" -}}
{{- printf "%s-validation" (include "fairlead.clusterName" .) -}}
{{- end -}}

{{/* Not empty if the API server is to ask about anything. */}}
{{- define "fairlead.webhooks" -}}
{{- if or .Values.injection.enabled .Values.validation.enabled }}true{{ end -}}
{{- end -}}

{{/* Where the API server asks; without caBundle, which the control plane keeps right. */}}
{{- define "fairlead.webhookClient" -}}
{{- $remote := .root.Values.remote }}
{{- if and $remote.enabled $remote.injectionURL }}
url: {{ printf "%s%s" (trimSuffix "/" $remote.injectionURL) .path | quote }}
{{- else }}
service:
  name: {{ include "fairlead.name" .root }}
  namespace: {{ .root.Release.Namespace }}
  path: {{ .path }}
  port: {{ $remote.enabled | ternary 15017 443 }}
{{- end }}
{{- end -}}

{{/* Where it asks about Pods: in a remote cluster, the path says which one it is, as in Istio. */}}
{{- define "fairlead.injectionPath" -}}
/inject
{{- if .Values.remote.enabled -}}
/cluster/{{ .Values.clusterId | replace "/" "--slash--" }}
{{- with .Values.proxy.network }}/net/{{ replace "/" "--slash--" . }}{{ end }}
{{- end -}}
{{- end -}}
