// Starts the chart's pods with exactly their rendered environment, volumes and account, and sends mail through them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { type Machine, missingForNetworks, startNetwork } from '../faults/net-namespace.ts'
import { Api, type Inbox, type Message } from '../support/api.ts'
import { ExternalServer } from '../support/external-server.ts'
import { send, untilStates } from '../support/node.ts'
import { type S3Server, startS3 } from '../support/s3.ts'
import { type Scope, until } from '../support/until.ts'
import { type Cluster, type Running, runPod } from './container.ts'
import { findHelm, type Pod, type Probe, podsOf, type Rendered, render } from './helm.ts'

const found = findHelm()
const missing = ('missing' in found && found.missing) || (missingForNetworks() ?? false)

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

/** Lets the machines of a network reach a server on this machine's loopback. Returns the port at `here`. */
async function forward(scope: Scope, here: string, port: number): Promise<number> {
  const open = new Set<Socket>()
  const server = createServer((inward) => {
    const outward = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [inward, outward],
      [outward, inward],
    ] as const) {
      open.add(socket)
      socket.pipe(other)
      socket.on('error', () => other.destroy())
      socket.on('close', () => open.delete(socket))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, here, resolve))
  scope.after(() => {
    server.close()
    // A machine that was removed ends no connection.
    for (const socket of open) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** Values for a cluster whose database and bucket are on this machine. */
async function makeValues(t: Scope, here: string, s3: S3Server): Promise<object> {
  const url = s3.makeUrl()
  const endpoint = new URL(/endpoint=(.*)/.exec(url)![1]!)
  const port = await forward(t, here, Number(endpoint.port))
  return {
    image: { repository: 'registry.example.com/posthorn' },
    settings: {
      POSTHORN_MAIL_HOST: 'mx.example.com',
      POSTHORN_MANAGED_DOMAIN: 'inbox.example.com',
      // No server listens there.
      POSTHORN_DNS: `${here}:9`,
      POSTHORN_TRUSTED_PROXIES: `${here}/32`,
    },
    blobs: { url: url.replace(endpoint.origin, `http://${here}:${port}`) },
    secrets: {
      values: {
        'secret-key': randomBytes(32).toString('hex'),
        POSTHORN_DATABASE_URL: 'postgres://posthorn:horn%2Fsecret@localhost/postgres?host=/run/postgresql',
        ...s3.env,
      },
    },
    drainDelaySeconds: 3,
  }
}

const statusOf = async (url: string) => {
  const answer = await fetch(url).catch(() => null)
  await answer?.body?.cancel()
  return answer?.status ?? 0
}

interface Started {
  pod: Pod
  machine: Machine
  running: Running
}

/** Asks as the kubelet does. */
function probe({ pod, machine }: Started, { httpGet }: Probe): Promise<number> {
  const port = pod.spec.containers[0].ports!.find(({ name }) => name === httpGet.port)!.containerPort
  return statusOf(`http://${machine.there}:${port}${httpGet.path}`)
}

/** Resolves once the pod is ready. Fails with its log if it ends. */
async function untilReady(started: Started): Promise<void> {
  const { readinessProbe, startupProbe, livenessProbe } = started.pod.spec.containers[0]
  const isReady = async () => {
    assert.equal(started.running.child.exitCode, null, started.running.log())
    return (await probe(started, readinessProbe!)) === 200
  }
  // The kubelet's own patience.
  const timeoutMs = startupProbe!.periodSeconds * startupProbe!.failureThreshold * 1_000
  await until('the pod to be ready', isReady, { timeoutMs, everyMs: 200 })
  for (const each of [startupProbe!, livenessProbe!]) assert.equal(await probe(started, each), 200)
}

/** Runs a command in a pod like this one, and returns its one document. */
async function execute<Answer>(
  t: Scope,
  { pod, machine }: Started,
  cluster: Cluster,
  words: string[],
): Promise<Answer> {
  const { status, stdout, log } = await runPod(t, pod.spec, machine, cluster, [...words, '--json']).ended
  assert.equal(status, 0, log)
  return JSON.parse(stdout) as Answer
}

const secretsIn = (objects: Rendered[]) =>
  Object.fromEntries(
    objects.flatMap(({ metadata, stringData }) => (stringData ? [[metadata.name, stringData]] : [])),
  )

/** Makes a caller with a key that may do everything. */
async function makeCaller(t: Scope, web: Started, cluster: Cluster): Promise<Api> {
  const { id } = await execute<{ id: string }>(t, web, cluster, [
    'org',
    'create',
    '--name',
    'Test',
    '--active',
  ])
  const words = ['key', 'create', '--org', id, '--name', 'test', '--scopes', '*']
  const { secret } = await execute<{ secret: string }>(t, web, cluster, words)
  return new Api(() => `http://${web.machine.there}:8025`, secret)
}

/** Stops all pods, and checks that each announces it first, ends by itself in time, and leaves nothing behind. */
async function drain(t: TestContext, all: Started[]): Promise<void> {
  const beganMs = performance.now()
  await Promise.all(
    all.map(async (started) => {
      const { pod, running } = started
      const { VmRSS } = memoryOf(running.child.pid!)
      running.child.kill('SIGTERM')
      await until(
        'the probe to fail',
        async () => (await probe(started, pod.spec.containers[0].readinessProbe!)) === 503,
      )
      const { status, log } = await running.ended
      const seconds = (performance.now() - beganMs) / 1_000
      assert.equal(status, 0, log)
      assert.ok(seconds < pod.spec.terminationGracePeriodSeconds!, `${seconds} s`)
      t.diagnostic(
        `${pod.metadata.labels['app.kubernetes.io/component']}: ${VmRSS} MB, ended after ${seconds.toFixed(1)} s`,
      )
    }),
  )
}

function memoryOf(pid: number): { VmRSS: number } {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return { VmRSS: Math.round(Number(kilobytes) / 1_024) }
}

test('the migration job and the pods of each deployment run, pass mail on, and drain', {
  skip: missing,
}, async (t) => {
  const folder = mkdtempSync('/tmp/posthorn-pods-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [server, s3] = [await ExternalServer.make(t), await startS3(t)]
  // Pods may not enter the folder of the cluster.
  const sockets = join(folder, 'sockets')
  mkdirSync(sockets)
  chmodSync(sockets, 0o777)
  chmodSync(folder, 0o755)
  await server.start(`unix_socket_directories=${server.folder},${sockets}`)
  const { here, machines } = startNetwork(t, 4)
  const objects = render((found as { folder: string }).folder, null, await makeValues(t, here, s3))
  const cluster: Cluster = {
    folder,
    secrets: secretsIn(objects),
    links: { '/run/postgresql': sockets },
  }
  const pods = podsOf(objects)

  const [migrates, ...others] = machines
  const migration = await runPod(t, pods.get('mail-posthorn-migrate')!.spec, migrates!, cluster).ended
  assert.equal(migration.status, 0, migration.log)
  assert.match(migration.stdout, /The schema is up to date/)

  const all = ['web', 'mx', 'work'].map((name, index): Started => {
    const pod = pods.get(`mail-posthorn-${name}`)!
    const machine = others[index]!
    return { pod, machine, running: runPod(t, pod.spec, machine, cluster) }
  })
  await Promise.all(all.map(untilReady))

  // A message of 400 KB: web accepts it and stores it in the bucket, work delivers it to mx, and files it from there.
  const [web, mx, work] = all as [Started, Started, Started]
  const api = await makeCaller(t, web, cluster)
  const make = () => api.want<Inbox>('/v1/inboxes', { method: 'POST', status: 201, body: {} })
  const [from, to] = [await make(), await make()]
  const { submission } = await send(api, from, [to.address], { text: 'Hello. '.repeat(60_000) })
  await untilStates(api, submission.id, 'delivered')
  const arrived = await until('it to be filed', async () => {
    const [message]: Message[] = await api.exported(to.id)
    return message ?? null
  })
  assert.ok(arrived.text.length > 400_000)
  assert.ok(s3.listObjects(/./).length > 1)
  assert.match(mx.running.log(), new RegExp(`"peer":"${work.machine.there}","msg":"mail received"`))
  await drain(t, all)
})
