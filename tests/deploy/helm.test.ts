// Checks the Helm chart: Helm renders it, its objects are valid and fit together, and its pods run the real service.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import packageJson from '../../package.json' with { type: 'json' }
import { listSettings, readSettings, roles } from '../../src/config/settings.ts'
import type { Scope } from '../support/until.ts'
import { environmentOf, readStages, root } from './dockerfile.ts'
import { chart, environmentIn, findHelm, podsOf, type Rendered, render, runHelm } from './helm.ts'

const found = findHelm()
const helm = 'folder' in found ? found.folder : ''
const missing = 'missing' in found && found.missing

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

const examples = ['ingress.yaml', 'acme.yaml', 'proxy.yaml']
const secretKey = randomBytes(32).toString('hex')
const rendered = new Map<string, Rendered[]>()

/** The least values. */
const least = {
  image: { repository: 'registry.example.com/posthorn' },
  settings: { POSTHORN_MAIL_HOST: 'mx.example.com', POSTHORN_MANAGED_DOMAIN: 'inbox.example.com' },
  blobs: { url: 's3://mail/production?region=eu-central-1' },
  secrets: { values: { 'secret-key': secretKey, POSTHORN_DATABASE_URL: 'postgres://a:b@10.0.0.1/posthorn' } },
}

/** Renders every combination that the tests read, once. */
function renderAll(): void {
  for (const name of examples) rendered.set(name, render(helm, name))
  rendered.set('least', render(helm, null, least))
  const full = {
    ipFamily: 'IPv6',
    https: { enabled: true },
    tls: { existingSecret: 'tls' },
    service: { type: 'LoadBalancer', annotations: { a: 'b' } },
    smtp: { loadBalancerClass: 'x', loadBalancerSourceRanges: ['192.0.2.0/24'] },
    image: { repository: 'registry.example.com/posthorn', pullSecrets: [{ name: 'pull' }] },
    serviceAccount: { annotations: { a: 'b' } },
    podAnnotations: { a: 'b' },
    networkPolicy: {
      extraEgress: [{ to: [{ ipBlock: { cidr: '169.254.170.23/32' } }], ports: [{ port: 80 }] }],
    },
    extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.crt' }],
    extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
    extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
    deployments: {
      work: {
        nodeSelector: { outbound: 'true' },
        tolerations: [{ key: 'mail', operator: 'Exists' }],
        affinity: { nodeAffinity: {} },
        priorityClassName: 'mail',
        resources: { limits: { memory: '2Gi' } },
      },
    },
  }
  rendered.set('full', render(helm, null, overlay(least, full)))
}

before(() => {
  if (!missing) renderAll()
})

test('helm lint accepts the chart with each example', { skip: missing }, () => {
  for (const name of examples) {
    const { status, stdout, stderr } = runHelm(helm, [
      'lint',
      '--strict',
      chart,
      '-f',
      join(chart, 'examples', name),
    ])
    assert.equal(status, 0, stdout + stderr)
  }
})

test('the chart has the version of the program', () => {
  const text = readFileSync(join(chart, 'Chart.yaml'), 'utf8')
  assert.match(text, new RegExp(`^appVersion: ${packageJson.version}$`, 'm'))
})

const refused: [title: string, values: object, words: RegExp][] = [
  ['an unknown value', { replicas: 3 }, /additional properties 'replicas' not allowed/],
  ['no image', { image: { repository: '' } }, /image\/repository/],
  ['an unknown setting', { settings: { POSTHORN_MAILHOST: 'x' } }, /'POSTHORN_MAILHOST' not allowed/],
  ['a setting of the chart', { settings: { POSTHORN_HTTP: '0.0.0.0:80' } }, /'POSTHORN_HTTP' not allowed/],
  [
    'a secret among the settings',
    { settings: { POSTHORN_RELAY_URL: 'smtp://a:b@c' } },
    /'POSTHORN_RELAY_URL' not allowed/,
  ],
  [
    'a number, which Helm would print as 2.6e+08',
    { settings: { POSTHORN_HTTP_MEMORY: 268435456 } },
    /want string/,
  ],
  ['a folder for large messages', { blobs: { url: 'file:/blobs' } }, /blobs\/url/],
  [
    'a role that no pod has',
    { deployments: { work: { roles: ['delivery', 'jobs'] } } },
    /no entry of deployments has the role webhooks/,
  ],
  ['an unknown role', { deployments: { work: { roles: ['smtp'] } } }, /roles\/0/],
  [
    'the dashboard without the API',
    { deployments: { pages: { roles: ['dashboard'], replicas: 1 } } },
    /give both roles to the same entries/,
  ],
  ['two sources of secrets', { secrets: { existingSecret: 'x' } }, /set only one of them/],
  ['no secrets', { secrets: { values: null } }, /secrets\.values\.secret-key is missing/],
  ['a short secret key', { secrets: { values: { 'secret-key': 'abc' } } }, /secrets\/values\/secret-key/],
  [
    'two certificates',
    { tls: { existingSecret: 'x' }, settings: { POSTHORN_ACME: 'a@example.com' } },
    /set only one of them/,
  ],
  [
    'an ingress that is not trusted',
    { ingress: { enabled: true } },
    /needs settings\.POSTHORN_TRUSTED_PROXIES/,
  ],
  [
    'a balancer that is not trusted',
    { smtp: { proxyProtocol: true } },
    /needs settings\.POSTHORN_SMTP_TRUSTED/,
  ],
  [
    'port 80 at pods without the API',
    { smtp: { withHttp: true } },
    /deployments\.mx has the role mx without api/,
  ],
]

/** Returns `values` with `changes` laid over them. */
function overlay(values: object, changes: object): object {
  const merged = Object.assign({} as Record<string, unknown>, values)
  for (const [name, change] of Object.entries(changes)) {
    const isDeep = typeof change === 'object' && change !== null && !Array.isArray(change) && name in merged
    merged[name] = isDeep ? overlay(merged[name] as object, change) : change
  }
  return merged
}

test('wrong values are refused with the reason', { skip: missing }, () => {
  for (const [title, values, words] of refused)
    assert.throws(() => render(helm, null, overlay(least, values)), words, title)
})

/** Settings that the chart derives from other values, takes from the Secret, or that no pod can use. */
const notSettings = [
  ...[
    'DATA_DIR',
    'BLOB_URL',
    'HTTP',
    'HTTPS',
    'OPERATOR',
    'SMTP',
    'SMTP_TLS_CERT',
    'SMTP_TLS_KEY',
    'SECRET_KEY_FILE',
  ],
  ...['DRAIN_DELAY', 'ROLES', 'WORKERS', 'LOG_FORMAT', 'DATABASE_URL', 'RELAY_URL', 'OIDC_CLIENT_SECRET'],
  ...['BACKUP_PASSPHRASE', 'OUTBOUND_IP', 'SUBMISSION', 'SUBMISSIONS'],
].map((name) => `POSTHORN_${name}`)

test('the schema knows every setting of the service, and every role', () => {
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
  const { settings, deployments } = schema.properties
  assert.deepEqual([...Object.keys(settings.properties), ...notSettings].sort(), listSettings().sort())
  assert.deepEqual(deployments.additionalProperties.properties.roles.items.enum, roles)
})

/** The type of each object, in the package of Kubernetes' types. */
const types: Record<string, string> = {
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  PodDisruptionBudget: 'policy/v1',
  Ingress: 'networking/v1',
  NetworkPolicy: 'networking/v1',
  Service: 'core/v1',
  ServiceAccount: 'core/v1',
  Secret: 'core/v1',
}

/** Returns the errors of the compiler if these objects are not objects of Kubernetes, with all their fields. */
function compile(t: Scope, objects: Rendered[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-types-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const lines = objects.map((object, index) => {
    const type = `import('${helm}/kubernetes-types/${types[object.kind]}').${object.kind}`
    return `export const object${index}: ${type} = ${JSON.stringify(object)}`
  })
  writeFileSync(join(folder, 'objects.ts'), lines.join('\n'))
  const words = ['--noEmit', '--strict', '--target', 'esnext', '--ignoreConfig', 'objects.ts']
  const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: folder, encoding: 'utf8' })
  return stdout
}

test('every object has only fields of Kubernetes, with their types', { skip: missing }, (t) => {
  const objects = [...rendered.values()].flat()
  assert.deepEqual(new Set(objects.map(({ kind }) => kind)), new Set(Object.keys(types)))
  // The compiler finds a misspelled field far below, and a wrong type.
  const [first, second] = structuredClone(objects.filter(({ kind }) => kind === 'Deployment'))
  const { readinessProbe, ...container } = first!.spec.template!.spec.containers[0]
  first!.spec.template!.spec.containers = [Object.assign(container, { readinesProbe: readinessProbe })]
  Object.assign(second!.spec, { replicas: '2' })
  const errors = compile(t, [first!, second!, ...objects])
    .trim()
    .split('\n')
  assert.equal(errors.length, 2, errors.join('\n'))
  assert.match(errors[0]!, /^objects\.ts\(1,.*"readinesProbe"' does not exist in type 'Container'/)
  assert.match(errors[1]!, /^objects\.ts\(2,.*'string' is not assignable to type 'number'/)
})

const hasLabels = (labels: Record<string, string>, wanted: Record<string, string>) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value)

test('selectors, ports and names fit together', { skip: missing }, () => {
  for (const [name, objects] of rendered) {
    const pods = [...podsOf(objects).values()]
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    assert.equal(new Set(names).size, names.length, name)
    for (const { kind, metadata, spec } of objects) {
      const selector = spec?.selector?.matchLabels ?? spec?.podSelector?.matchLabels ?? spec?.selector
      if (!selector || kind === 'Job') continue
      const chosen = pods.filter((pod) => hasLabels(pod.metadata.labels, selector as Record<string, string>))
      assert.ok(chosen.length > 0, `${name}: ${kind} ${metadata.name} selects pods`)
      if (kind === 'Deployment' || kind === 'PodDisruptionBudget')
        assert.equal(chosen.length, 1, metadata.name)
      // Each pod of a Service listens on each of its ports.
      for (const { targetPort } of kind === 'Service' ? spec.ports! : [])
        for (const pod of chosen)
          assert.ok(
            pod.spec.containers[0].ports!.some((port) => port.name === targetPort),
            `${name}: ${targetPort}`,
          )
    }
    const accounts = objects
      .filter(({ kind }) => kind === 'ServiceAccount')
      .map(({ metadata }) => metadata.name)
    const secrets = objects.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name)
    for (const { spec } of pods) {
      assert.ok(accounts.includes(spec.serviceAccountName))
      const named = spec.volumes.flatMap(({ secret }) => (secret ? [secret.secretName] : []))
      const read = spec.containers[0].env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? [])
      const given = ['posthorn', 'posthorn-tls', 'tls']
      for (const secret of [...named, ...read])
        assert.ok(secrets.includes(secret) || given.includes(secret), secret)
    }
  }
})

test('the job of the schema runs first, with copies of what is not installed before it', {
  skip: missing,
}, () => {
  const objects = rendered.get('least')!
  const hooks = objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'])
  const weights = hooks.map(({ kind, metadata }) => [
    kind,
    Number(metadata.annotations!['helm.sh/hook-weight']),
  ])
  assert.deepEqual(Object.fromEntries(weights), { Secret: -5, ServiceAccount: -5, Job: 0 })
  for (const { metadata } of hooks)
    assert.equal(metadata.annotations!['helm.sh/hook'], 'pre-install,pre-upgrade')
  const job = hooks.find(({ kind }) => kind === 'Job')!.spec.template!.spec
  const named = hooks.map(({ metadata }) => metadata.name)
  assert.deepEqual([...new Set(named)], ['mail-posthorn-migrate'])
  assert.equal(job.serviceAccountName, named[0])
  assert.equal(job.volumes.find(({ secret }) => secret)!.secret!.secretName, named[0])
  assert.deepEqual(job.containers[0].args, ['migrate'])
})

test('pods have no rights, write only to their volumes, and show no secret', { skip: missing }, () => {
  const image = environmentOf(readStages().at(-1)!)
  for (const objects of rendered.values()) {
    for (const { spec } of podsOf(objects).values()) {
      const [container] = spec.containers
      // The profile `restricted` of Kubernetes' Pod Security Standards.
      const { runAsNonRoot, runAsUser, seccompProfile } = spec.securityContext
      assert.deepEqual([runAsNonRoot, runAsUser, seccompProfile], [true, 64990, { type: 'RuntimeDefault' }])
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      assert.equal(spec.automountServiceAccountToken, false)
      const writable = spec.volumes.filter(({ emptyDir }) => emptyDir).map(({ name }) => name)
      const mounted = container.volumeMounts
        .filter(({ name }) => writable.includes(name))
        .map(({ mountPath }) => mountPath)
      assert.deepEqual(mounted, [image['POSTHORN_DATA_DIR'], image['NODE_COMPILE_CACHE'], '/tmp'])
      for (const { secret } of spec.volumes) assert.ok(!secret || secret.defaultMode === 0o440)
      assert.ok(!JSON.stringify(spec).includes(secretKey))
      assert.ok(!JSON.stringify(spec).includes('postgres://'))
      assert.ok(container.resources.limits['memory'])
    }
  }
})

test('each pod has valid settings, and a stop has time for its drain', { skip: missing }, () => {
  const secret = { POSTHORN_DATABASE_URL: 'postgres://a:b@x:5432,y:5432/z?target_session_attrs=read-write' }
  const secrets = new Proxy({}, { get: () => secret })
  for (const [name, objects] of rendered) {
    const all = [...podsOf(objects).entries()]
    const ip = name === 'full' ? '2001:db8::7' : '10.1.2.3'
    const served = new Set<string>()
    for (const [podName, { spec }] of all) {
      const [container] = spec.containers
      const environment = Object.assign(
        environmentOf(readStages().at(-1)!),
        environmentIn(container, secrets, ip),
      )
      const own = Object.entries(environment).filter(
        ([key]) => key.startsWith('POSTHORN_') || key.startsWith('AWS_'),
      )
      const settings = readSettings(Object.fromEntries(own))
      assert.ok(
        !settings.isDevelopment &&
          's3' in settings.blobStore &&
          settings.databaseUrl &&
          !settings.mayMakeSecretKey,
      )
      // Other pods connect to this address.
      assert.deepEqual(settings.smtp, { host: ip, port: 2525 })
      if (podName.endsWith('-migrate')) continue
      for (const role of settings.roles) served.add(role)
      const ports = Object.fromEntries(container.ports!.map((port) => [port.name, port.containerPort]))
      assert.equal(ports['operator'], settings.operator.port)
      assert.equal(ports['http'], settings.roles.includes('api') ? settings.http.port : undefined)
      assert.equal(ports['smtp'], settings.roles.includes('mx') ? settings.smtp.port : undefined)
      assert.equal(ports['https'], settings.roles.includes('api') ? settings.https?.port : undefined)
      // operating.md: a stop takes up to 30 s plus the delay, and 5 s more are given.
      assert.equal(spec.terminationGracePeriodSeconds! * 1_000, 35_000 + settings.drainDelayMs)
      const { startupProbe, livenessProbe, readinessProbe } = container
      assert.deepEqual(
        [startupProbe, livenessProbe, readinessProbe].map((probe) => probe!.httpGet.path),
        ['/healthz', '/healthz', '/readyz'],
      )
      // The kubelet sees the drain before the listeners close. Services leave out the pod as soon as it is deleted.
      assert.ok(readinessProbe!.periodSeconds * 1_000 <= settings.drainDelayMs)
    }
    assert.deepEqual([...served].sort(), [...roles].sort(), name)
  }
})

test('the notes name the commands, the missing parts and the connections', { skip: missing }, () => {
  const words = ['install', 'mail', chart, '--namespace', 'post', '--dry-run=client']
  const { stdout, stderr } = runHelm(helm, words, least)
  const [, notes = ''] = stdout.split('\nNOTES:\n')
  assert.match(notes, /exec deployment\/mail-posthorn-web -- posthorn doctor/, stderr)
  assert.match(notes, /WARNING: no certificate/)
  assert.match(notes, /WARNING: no clamd/)
  // Nine pods with 17 connections during an upgrade, a command with 16, and 3 reserved ones, as docs/kubernetes.md says.
  assert.match(notes, /max_connections of at least 172:/)
  assert.match(readFileSync(join(root, 'docs/kubernetes.md'), 'utf8'), /The default of six pods needs 172\s/)
})

const serviceOf = (objects: Rendered[], name: string) =>
  objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name)!.spec

test('the balancer of SMTP keeps the address of the peer', { skip: missing }, () => {
  const smtp = (example: string) => serviceOf(rendered.get(example)!, 'mail-posthorn-smtp')
  assert.equal(smtp('ingress.yaml').externalTrafficPolicy, 'Local')
  // Cluster would replace the address of the balancer by a machine's, whose PROXY header pods do not trust.
  assert.equal(smtp('proxy.yaml').externalTrafficPolicy, 'Local')
  assert.deepEqual(
    smtp('acme.yaml').ports!.map(({ port, targetPort }) => `${port} ${targetPort}`),
    ['25 smtp', '80 http', '443 https'],
  )
})

test('the network policy opens the ports of all servers in private networks', { skip: missing }, () => {
  const policy = rendered.get('ingress.yaml')!.find(({ kind }) => kind === 'NetworkPolicy')!.spec
  assert.deepEqual(
    policy.egress![0]!.ports!.map(({ port }) => port),
    [53, 53, 5432, 3310, 11333],
  )
  const acme = rendered.get('acme.yaml')!.find(({ kind }) => kind === 'NetworkPolicy')!.spec
  assert.ok(
    acme.egress![0]!.ports!.some(({ port }) => port === 9000),
    'the endpoint of S3',
  )
  const usual = {
    settings: { POSTHORN_RSPAMD: 'http://rspamd.scanning.svc/' },
    blobs: { url: 's3://mail/production?endpoint=https://s3.example.com&region=x' },
  }
  const unnamed = render(helm, null, overlay(least, usual)).find(({ kind }) => kind === 'NetworkPolicy')!.spec
  assert.deepEqual(
    unnamed.egress![0]!.ports!.map(({ port }) => port),
    [53, 53, 5432, 80, 443],
    'the usual ports of http and https',
  )
  assert.deepEqual(
    acme.ingress!.flatMap(({ ports }) => ports.map(({ port }) => port)),
    [2525, 8025, 8443],
  )
})

test('another secret starts new pods, and another order of values does not', { skip: missing }, () => {
  const sums = (values: object) =>
    [...podsOf(render(helm, null, overlay(least, values))).values()].map(
      ({ metadata }) => metadata.annotations?.['checksum/secret'],
    )
  const first = sums({})
  assert.ok(first.filter(Boolean).length === 3)
  assert.deepEqual(sums({}), first)
  assert.notDeepEqual(sums({ secrets: { values: { POSTHORN_DATABASE_URL: 'postgres://other/x' } } }), first)
})
