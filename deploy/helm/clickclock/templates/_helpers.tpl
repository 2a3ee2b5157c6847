{{- define "clickclock.labels" -}}
app.kubernetes.io/name: clickclock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "clickclock.selector" -}}
app.kubernetes.io/name: clickclock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "clickclock.fullname" -}}
{{- if contains "clickclock" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-clickclock" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* The configuration file of a component, as TOML: what is given, below what the chart knows better. */ -}}
{{- define "clickclock.config" -}}
{{- $own := dict
  "data_dir" "/var/lib/clickclock"
  "host" "0.0.0.0"
  "port" 8080
  "authentication" (ternary "none" "tokens" .root.Values.insecureNoAuthentication)
  "click_host" (ternary "0.0.0.0" "127.0.0.1" (eq .component "collector"))
  "click_port" 8081
  "insecure_no_authentication" .root.Values.insecureNoAuthentication
  "log_format" "json"
  "clicks" (eq .component "collector") -}}
{{- if .root.Values.tls.secretName -}}
{{- $own = mergeOverwrite $own (dict "tls_certificate" "/etc/clickclock-tls/tls.crt" "tls_key" "/etc/clickclock-tls/tls.key") -}}
{{- end -}}
{{- if and .root.Values.orderTokens.secretName (eq .component "collector") -}}
{{- $_ := set $own "order_tokens_file" "/etc/clickclock-order-tokens/order-tokens.json" -}}
{{- end -}}
{{- if .root.Values.jobSecrets -}}
{{- $_ := set $own "secrets_dir" "/etc/clickclock-secrets" -}}
{{- end -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) $own -}}
{{- if .root.Values.jobs.enabled -}}
{{- $kubernetes := mergeOverwrite (deepCopy .root.Values.jobs.options) (dict "executor" "kubernetes" "namespace" .root.Release.Namespace "capacity" (int .root.Values.jobs.capacity)) -}}
{{- $clusters := mergeOverwrite (deepCopy (default dict .root.Values.config.clusters)) (dict "kubernetes" $kubernetes) -}}
{{- $_ := set $config "clusters" $clusters -}}
{{- end -}}
{{- include "clickclock.whole" $config -}}
{{- toToml $config -}}
{{- end }}

{{- /* Helm reads the 3 of a file of values as 3.0, which is no whole number: in place, they become what was written. */ -}}
{{- define "clickclock.whole" -}}
{{- $of := . -}}
{{- range $name, $each := $of -}}
{{- if kindIs "float64" $each -}}
{{- if and (eq (floor $each) $each) (lt $each 1e15) (gt $each -1e15) -}}
{{- $_ := set $of $name (int64 $each) -}}
{{- end -}}
{{- else if kindIs "map" $each -}}
{{- include "clickclock.whole" $each -}}
{{- else if kindIs "slice" $each -}}
{{- $entries := list -}}
{{- range $each -}}
{{- $entry := dict "is" . -}}
{{- include "clickclock.whole" $entry -}}
{{- $entries = append $entries $entry.is -}}
{{- end -}}
{{- $_ := set $of $name $entries -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* What both ports speak. */ -}}
{{- define "clickclock.scheme" -}}
{{- ternary "HTTPS" "HTTP" (ne .root.Values.tls.secretName "") -}}
{{- end }}

{{- /* How many replicas of a component may be away. One, if the values say nothing. */ -}}
{{- define "clickclock.budget" -}}
{{- toYaml (default (dict "maxUnavailable" 1) .) -}}
{{- end }}

{{- /* A replica's own volume. It stays when the chart goes: it may hold what is nowhere else yet. */ -}}
{{- define "clickclock.volume" -}}
persistentVolumeClaimRetentionPolicy:
  whenDeleted: Retain
  whenScaled: Retain
volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ .size }}
{{- end }}

{{- /* The pod of a component: scheduler replicas and collectors are one program with one setting apart. */ -}}
{{- define "clickclock.pod" -}}
{{- $values := .values -}}
metadata:
  labels:
    {{- include "clickclock.selector" . | nindent 4 }}
  annotations:
    checksum/config: {{ include "clickclock.config" . | sha256sum }}
spec:
  serviceAccountName: {{ include "clickclock.fullname" .root }}
  automountServiceAccountToken: {{ .root.Values.jobs.enabled }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  # Kubernetes would tell of a Service `clickclock` in CLICKCLOCK_PORT, which is a setting.
  enableServiceLinks: false
  # Attempts on the pod's own processes end with it; those on a cluster go on.
  terminationGracePeriodSeconds: 60
  containers:
    - name: clickclock
      image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: [serve, --config, /etc/clickclock/clickclock.toml]
      env:
        # A file, because others may see what a process is given in variables.
        - name: CLICKCLOCK_DATABASE_URL_FILE
          value: /etc/clickclock-database/url
        # The replicas ask each other for the output of attempts.
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: CLICKCLOCK_ADVERTISE_URL
          value: {{ include "clickclock.scheme" . | lower }}://$(POD_IP):8080
      {{- with .root.Values.environmentFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8080
        {{- if eq .component "collector" }}
        - name: clicks
          containerPort: 8081
        {{- end }}
      # Until it is up: migrations of a large database may take a while.
      startupProbe:
        tcpSocket:
          port: http
        periodSeconds: 2
        failureThreshold: 150
      # A store that is away for a while is no reason to be restarted, so only the port is asked for.
      livenessProbe:
        tcpSocket:
          port: http
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet:
          {{- if eq .component "collector" }}
          path: /healthz
          port: clicks
          {{- else }}
          path: /schedulerService/jobTrigger
          port: http
          {{- end }}
          scheme: {{ include "clickclock.scheme" . }}
        periodSeconds: 5
        timeoutSeconds: 5
      # Whoever sends here hears a moment later that the pod is leaving: until then it answers.
      lifecycle:
        preStop:
          exec:
            command: [sleep, "5"]
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /var/lib/clickclock
        - name: config
          mountPath: /etc/clickclock
          readOnly: true
        - name: database
          mountPath: /etc/clickclock-database
          readOnly: true
        {{- if .root.Values.tls.secretName }}
        - name: tls
          mountPath: /etc/clickclock-tls
          readOnly: true
        {{- end }}
        {{- if and .root.Values.orderTokens.secretName (eq .component "collector") }}
        - name: order-tokens
          mountPath: /etc/clickclock-order-tokens
          readOnly: true
        {{- end }}
        {{- range .root.Values.jobSecrets }}
        - name: secrets-{{ .application }}
          mountPath: /etc/clickclock-secrets/{{ .application }}
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: config
      configMap:
        name: {{ include "clickclock.fullname" .root }}-{{ .component }}
    - name: database
      secret:
        secretName: {{ .root.Values.database.secretName }}
        defaultMode: 0440
        items:
          - key: {{ .root.Values.database.secretKey }}
            path: url
    {{- if .root.Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ .root.Values.tls.secretName }}
        defaultMode: 0440
    {{- end }}
    {{- if and .root.Values.orderTokens.secretName (eq .component "collector") }}
    - name: order-tokens
      secret:
        secretName: {{ .root.Values.orderTokens.secretName }}
        defaultMode: 0440
    {{- end }}
    {{- range .root.Values.jobSecrets }}
    - name: secrets-{{ .application }}
      secret:
        secretName: {{ .secretName }}
        defaultMode: 0440
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if not (dig "volume" "enabled" true $values) }}
    - name: data
      emptyDir: {}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "clickclock.selector" . | nindent 10 }}
{{- end }}
