// An operator pauses a queue before its first mail; later mail to that domain waits.
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import type { Acceptance } from '../support/api.ts'
import { runCommand } from '../support/command.ts'
import { DnsServer } from '../support/dns-server.ts'
import { send, untilStates } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Attempt {
  submissionId: string
  recipient: string
  attempt: number
  conversation: { isReused: boolean; steps: { command: string; code: number }[] }
}

interface Node {
  host: string
  isAlive: boolean
  roles: string[]
}

interface Queue {
  key: string
  paused: boolean
  waiting: number
}

test('a queue without any mail can be paused, holds later mail, and releases it', async (t) => {
  const sink = await startSink(t, { host: '127.0.0.41' })
  const dns = await DnsServer.start({ 'held.test': { A: [sink.host] }, 'free.test': { A: [sink.host] } })
  t.after(() => dns.close())
  const posthorn = await startPosthorn(t, {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(sink.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await createCaller(posthorn)
  const { nodes } = await posthorn.cli<{ nodes: Node[] }>(['nodes'])
  assert.deepEqual(
    nodes.map(({ host, isAlive, roles }) => ({ host, isAlive, roles: roles.length })),
    [{ host: hostname(), isAlive: true, roles: 6 }],
  )
  const inbox = await api.createInbox()
  assert.deepEqual(await posthorn.cli(['queue', 'pause', 'Held.TEST.']), {
    queue: 'held.test',
    state: 'paused',
  })
  const { queues } = await posthorn.cli<{ queues: Queue[] }>(['queue', 'list'])
  assert.deepEqual(
    queues.map(({ key, paused, waiting }) => ({ key, paused, waiting })),
    [{ key: 'held.test', paused: true, waiting: 0 }],
  )
  const to = [{ email: 'one@held.test' }, { email: 'two@free.test' }]
  const { submission } = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'paused-ahead',
    body: { to, subject: 'Test', text: 'Hello.' },
  })
  const states = async () => {
    const { recipients } = await api.want<Acceptance['submission']>(`/v1/submissions/${submission.id}`)
    return recipients.map(({ status }) => status).join(' ')
  }
  await until('the other one to be there', async () => (await states()) === 'pending delivered')
  assert.equal((await posthorn.cli<Queue>(['queue', 'show', 'held.test'])).waiting, 1)
  assert.deepEqual(
    sink.copies.map(({ recipient }) => recipient),
    ['two@free.test'],
  )
  const connections = sink.connections
  const traced = await runCommand(['queue', 'trace', 'one@held.test'], posthorn.env, process.cwd())
  assert.deepEqual([traced.status, traced.stderr], [1, ''])
  assert.match(
    traced.stdout,
    /^one@held\.test\n {2}route +queue held\.test, to the mail servers of its domain\n/,
  )
  assert.match(traced.stdout, /queue +paused, 1 waiting, 0 in delivery\n/)
  assert.match(
    traced.stdout,
    new RegExp(`\nheld\\.test +${sink.host} +${sink.port} +127\\.\\S+ +opportunistic\n`),
  )
  assert.match(traced.stdout, /\nMail would wait:\n {2}the queue is paused\n$/)
  const free = await runCommand(['queue', 'trace', 'two@free.test', '--json'], posthorn.env, process.cwd())
  assert.deepEqual([free.status, JSON.parse(free.stdout).outcome], [0, 'sent'])
  assert.equal(sink.connections, connections, 'a trace connects to no mail server')
  await posthorn.cli(['queue', 'resume', 'held.test'])
  await until('it to go on', async () => (await states()) === 'delivered delivered')

  await posthorn.cli(['queue', 'pause', 'held.test'])
  await api.want(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'paused-again',
    body: { to: to.slice(0, 1), subject: 'Test', text: 'Hello.' },
  })
  const cancelled = await runCommand(['queue', 'cancel', 'held.test'], posthorn.env, process.cwd())
  assert.equal(cancelled.stdout, 'held.test: 1 delivery cancelled\n')
})

test('pausing a domain warns if its mail goes to another queue', async (t) => {
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DELIVERY: 'capture' } })
  const attempt = (...words: string[]) => runCommand(['queue', ...words], posthorn.env, process.cwd())
  const paused = await attempt('pause', 'gmail.com')
  assert.deepEqual([paused.status, paused.stdout], [0, 'gmail.com is paused\n'])
  assert.match(
    paused.stderr,
    /POSTHORN_DELIVERY=capture, mail for gmail\.com waits in @capture: to hold it, pause that queue/,
  )
  assert.equal((await attempt('pause', '@capture')).stderr, '')
  const chain = await runCommand(['doctor', '--deliverability'], posthorn.env, process.cwd())
  assert.deepEqual(
    [chain.status, chain.stdout],
    [0, '- delivery          no mail leaves this deployment (capture)\n'],
  )
  const wrong = await attempt('pause', 'no domain')
  assert.equal(wrong.status, 1)
  assert.match(wrong.stderr, /^posthorn: there is no queue "no domain": name a domain, or @local[^\n]+\n$/)
})

test('a queue shows the last replies to several waiting mails', async (t) => {
  const sink = await startSink(t, {
    rule: ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now \x1b]0;\u202etitle' : null),
  })
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const posthorn = await startPosthorn(t, { env })
  const { api } = await createCaller(posthorn)
  const { submission } = await send(api, await api.createInbox(), ['one@far.test'])
  await untilStates(api, submission.id, 'deferred')
  const { attempts } = await posthorn.cli<{ attempts: Attempt[] }>(['queue', 'show', '@relay'])
  assert.deepEqual(
    attempts.map(({ submissionId, recipient, attempt }) => ({ submissionId, recipient, attempt })),
    [{ submissionId: submission.id, recipient: 'one@far.test', attempt: 1 }],
  )
  const { isReused, steps } = attempts[0]!.conversation
  assert.deepEqual(
    [isReused, ...steps.map(({ command, code }) => `${command} ${code}`)],
    [false, 'connect 220', 'EHLO 250', 'MAIL 250', 'RCPT 450', 'DATA 554'],
  )
  const { stdout } = await runCommand(['queue', 'show', '@relay'], posthorn.env, process.cwd())
  const [, title, ...said] = stdout
    .split('\n\n')
    .flatMap((part) => part.split('\n').slice(part.startsWith('QUEUE') ? 1 : 0))
  assert.match(title!, /^one@far\.test: attempt 1, 20\S+Z, 127\.0\.0\.1 \[127\.0\.0\.1\] without TLS$/)
  assert.match(said[0]!, /^ +-?\d+ ms {2}connect {3}220 sink\.test ESMTP$/)
  assert.match(said[3]!, /^ +\d+ ms {2}RCPT {6}450 4\.2\.1 not now {2}\]0;\ufffdtitle$/)
})
