{{- define "volley.labels" -}}
app.kubernetes.io/name: volley
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "volley.drivers" -}}{{ .Release.Name }}-driver{{- end }}
{{- define "volley.executors" -}}{{ .Release.Name }}-executor{{- end }}
{{- define "volley.image" -}}{{ .Values.image.repository }}:{{ .Values.image.tag }}{{- end }}
{{- /* The addresses of all drivers, as volley init was given them. */ -}}
{{- define "volley.addresses" -}}
{{- $all := list -}}
{{- range $n := until (int .Values.drivers.count) -}}
{{- $all = append $all (printf "%s-%d.%s.%s.svc:7077" (include "volley.drivers" $) $n (include "volley.drivers" $) $.Release.Namespace) -}}
{{- end -}}
{{- join "," $all -}}
{{- end }}
{{- define "volley.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- define "volley.container" -}}
image: {{ include "volley.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}
