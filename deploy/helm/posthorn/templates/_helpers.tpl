{{- /* Names, labels, the container and its environment, and checks that no schema can express. */ -}}

{{- define "posthorn.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "posthorn.selector" -}}
app.kubernetes.io/name: posthorn
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "posthorn.labels" -}}
{{ include "posthorn.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "posthorn.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "posthorn.secret" -}}
{{- .Values.secrets.existingSecret | default (include "posthorn.name" .) -}}
{{- end -}}

{{- define "posthorn.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "posthorn.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "posthorn.publicUrl" -}}
{{- .Values.settings.POSTHORN_PUBLIC_URL | default (printf "https://%s" .Values.settings.POSTHORN_MAIL_HOST) -}}
{{- end -}}

{{- /* Fails with the remedy if values contradict each other. */ -}}
{{- define "posthorn.check" -}}
{{- $served := dict -}}
{{- $all := list -}}
{{- range $name, $deployment := .Values.deployments -}}
{{- $all = concat $all $deployment.roles -}}
{{- $hasApi := has "api" $deployment.roles -}}
{{- $hasPages := has "dashboard" $deployment.roles -}}
{{- if or $hasApi $hasPages -}}
{{- $_ := set $served (printf "%t %t" $hasApi $hasPages) true -}}
{{- end -}}
{{- if and $.Values.smtp.withHttp (has "mx" $deployment.roles) (not $hasApi) -}}
{{- fail (printf "smtp.withHttp: deployments.%s has the role mx without api, so port 80 of its pods would be closed: give it both roles" $name) -}}
{{- end -}}
{{- end -}}
{{- range tuple "api" "mx" "delivery" "webhooks" "jobs" -}}
{{- if not (has . $all) -}}
{{- fail (printf "no entry of deployments has the role %s: add it to one" .) -}}
{{- end -}}
{{- end -}}
{{- if gt (len $served) 1 -}}
{{- fail "one Service reaches all pods with the role api or dashboard: give both roles to the same entries of deployments" -}}
{{- end -}}
{{- if and .Values.secrets.existingSecret .Values.secrets.values -}}
{{- fail "secrets.existingSecret and secrets.values: set only one of them" -}}
{{- end -}}
{{- if not .Values.secrets.existingSecret -}}
{{- range tuple "secret-key" "POSTHORN_DATABASE_URL" -}}
{{- if not (get ($.Values.secrets.values | default dict) .) -}}
{{- fail (printf "secrets.values.%s is missing: set it, or set secrets.existingSecret" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tls.existingSecret .Values.settings.POSTHORN_ACME -}}
{{- fail "tls.existingSecret and settings.POSTHORN_ACME both provide the certificate: set only one of them" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.settings.POSTHORN_TRUSTED_PROXIES) -}}
{{- fail "ingress.enabled needs settings.POSTHORN_TRUSTED_PROXIES: the addresses of the ingress controller's pods" -}}
{{- end -}}
{{- if and .Values.smtp.proxyProtocol (not .Values.settings.POSTHORN_SMTP_TRUSTED) -}}
{{- fail "smtp.proxyProtocol needs settings.POSTHORN_SMTP_TRUSTED: the addresses of the balancer" -}}
{{- end -}}
{{- end -}}

{{- /* Connections to PostgreSQL at most, while an upgrade runs one more pod of each Deployment, with 16 for commands. */ -}}
{{- define "posthorn.connections" -}}
{{- $sum := 16 -}}
{{- range .Values.deployments -}}
{{- $workers := int (.workers | default 1) -}}
{{- $node := 17 -}}
{{- if gt $workers 1 -}}
{{- $node = add (mul $workers (add1 (max 8 (div 16 $workers)))) 2 -}}
{{- end -}}
{{- $sum = add $sum (mul (add1 (int .replicas)) $node) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{- define "posthorn.podSecurity" -}}
# The account of the image. Its volumes belong to this group.
runAsNonRoot: true
runAsUser: 64990
runAsGroup: 64990
fsGroup: 64990
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "posthorn.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "posthorn.env" -}}
{{- $any := ternary "[::]" "0.0.0.0" (eq .Values.ipFamily "IPv6") -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: POSTHORN_DATA_DIR
  value: /var/lib/posthorn
- name: NODE_COMPILE_CACHE
  value: /var/cache/posthorn
- name: POSTHORN_SECRET_KEY_FILE
  value: /etc/posthorn-secret/secret-key
- name: POSTHORN_BLOB_URL
  value: {{ .Values.blobs.url | quote }}
- name: POSTHORN_HTTP
  value: {{ printf "%s:8025" $any | quote }}
{{- if .Values.https.enabled }}
- name: POSTHORN_HTTPS
  value: {{ printf "%s:8443" $any | quote }}
{{- end }}
- name: POSTHORN_OPERATOR
  value: {{ printf "%s:8026" $any | quote }}
# Other pods connect to this address, with mail for domains of this deployment.
- name: POSTHORN_SMTP
  value: {{ ternary "[$(POD_IP)]:2525" "$(POD_IP):2525" (eq .Values.ipFamily "IPv6") | quote }}
- name: POSTHORN_DRAIN_DELAY
  value: {{ printf "%ds" (int .Values.drainDelaySeconds) }}
- name: POSTHORN_LOG_FORMAT
  value: json
- name: POSTHORN_PUBLIC_URL
  value: {{ include "posthorn.publicUrl" . | quote }}
{{- if .Values.tls.existingSecret }}
- name: POSTHORN_SMTP_TLS_CERT
  value: /etc/posthorn-tls/tls.crt
- name: POSTHORN_SMTP_TLS_KEY
  value: /etc/posthorn-tls/tls.key
{{- end }}
{{- range $name, $value := omit .Values.settings "POSTHORN_PUBLIC_URL" }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
- name: POSTHORN_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: POSTHORN_DATABASE_URL
{{- range tuple "POSTHORN_RELAY_URL" "POSTHORN_RSPAMD" "POSTHORN_OIDC_CLIENT_SECRET" "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" }}
{{- if not (hasKey $.Values.settings .) }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $.secretName }}
      key: {{ . }}
      optional: true
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "posthorn.mounts" -}}
- name: data
  mountPath: /var/lib/posthorn
- name: cache
  mountPath: /var/cache/posthorn
- name: tmp
  mountPath: /tmp
- name: secret
  mountPath: /etc/posthorn-secret
  readOnly: true
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/posthorn-tls
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "posthorn.volumes" -}}
# Per pod: its identity, and parts of large messages on their way to S3. Nothing in it must outlive the pod.
- name: data
  emptyDir: {}
- name: cache
  emptyDir:
    sizeLimit: 128Mi
- name: tmp
  emptyDir:
    sizeLimit: 128Mi
- name: secret
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
    items:
      - key: secret-key
        path: secret-key
{{- if .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .Values.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "posthorn.secretData" -}}
stringData:
{{- range $name, $value := .Values.secrets.values }}
  {{ $name }}: {{ $value | quote }}
{{- end }}
{{- end -}}
