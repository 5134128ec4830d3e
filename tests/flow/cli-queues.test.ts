// A queue is paused ahead of its first mail, and what is sent there later waits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Acceptance } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { createCaller, run, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Queue {
  key: string
  paused: boolean
  waiting: number
}

test('a queue that no mail was ever in is paused, holds what is sent later, and lets it go', async (t) => {
  const sink = await startSink(t, { host: '127.0.0.41' })
  const dns = await DnsServer.start({ 'held.test': { A: [sink.host] }, 'free.test': { A: [sink.host] } })
  t.after(() => dns.close())
  const posthorn = await startPosthorn(t, {
    env: {
      ...{ POSTHORN_DELIVERY: 'direct', POSTHORN_DNS: dns.address, POSTHORN_MX_PORT: String(sink.port) },
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await createCaller(posthorn)
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
    ...{ method: 'POST', status: 202, idempotencyKey: 'paused-ahead' },
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
  await posthorn.cli(['queue', 'resume', 'held.test'])
  await until('it to go on', async () => (await states()) === 'delivered delivered')
})

test('where mail goes to another queue, pausing a domain ahead says so', async (t) => {
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DELIVERY: 'capture' } })
  const program = process.env['POSTHORN_TEST_PROGRAM'] ?? 'bin/posthorn'
  const attempt = (...words: string[]) => run(program, ['queue', ...words], posthorn.env, process.cwd())
  const paused = await attempt('pause', 'gmail.com')
  assert.deepEqual([paused.status, paused.stdout], [0, 'gmail.com is paused\n'])
  assert.match(paused.stderr, /POSTHORN_DELIVERY=capture mail for gmail\.com waits in @capture: pause that/)
  assert.equal((await attempt('pause', '@capture')).stderr, '')
  const wrong = await attempt('pause', 'no domain')
  assert.equal(wrong.status, 1)
  assert.match(wrong.stderr, /^posthorn: there is no queue "no domain": name a domain, or @local[^\n]+\n$/)
})
