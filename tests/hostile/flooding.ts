// Attacks by requests, connections and recipients: many, large, unfinished.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createCaller } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import type { Scope } from '../support/until.ts'
import { Wire } from '../support/wire.ts'
import { type Attack, memoryDuring, type Outcome, setStage, settle, stallDuring } from './attack.ts'

function growingHtml(): string {
  return `${'<blockquote>'.repeat(10)}<pre>${'x\n\n\n'.repeat(262_000)}`
}

async function refusedSends(scope: Scope): Promise<Outcome> {
  const { posthorn, attacker } = await setStage(scope)
  const body = { to: [{ email: 'a@healthy.test' }], subject: 'S', html: growingHtml() }
  const path = '/v1/inboxes/inb_000000000000000000000000/messages'
  await attacker.call(path, { method: 'POST', idempotencyKey: randomUUID(), body: { ...body, html: '<p>x' } })
  await settle()
  let statuses = ''
  const stallMs = await stallDuring(posthorn, async () => {
    const calls = Array.from({ length: 12 }, () =>
      attacker.call(path, { method: 'POST', idempotencyKey: randomUUID(), body }),
    )
    statuses = [...new Set((await Promise.all(calls)).map(({ status }) => status))].join(' ')
  })
  return {
    now: `all ${statuses}; the longest stall ${stallMs} ms`,
    held: statuses === '404' && stallMs < 100,
  }
}

/** Three bodies that cost much to read for their size, near the size limit. */
const largeBodies = [
  { text: 'xyz '.repeat(2_590_000) },
  { text: '%' },
  {
    text: 'T',
    attachments: [
      { filename: 'a', contentType: 'a/b', content: Buffer.alloc(10_000_000, 7).toString('base64') },
    ],
  },
].map((change) => {
  const body = JSON.stringify({ to: [{ email: 'a@healthy.test' }], subject: 'S', ...change })
  return Buffer.from(body.replace('%', '\\u0101'.repeat(2_500_000)))
})

/** Sends prepared bytes, because building them each time would load the machine that the service runs on. */
function post(url: string, secret: string, body: Buffer): Promise<number> {
  const headers = { 'x-api-key': secret, 'content-type': 'application/json', 'idempotency-key': randomUUID() }
  return new Promise((resolve, reject) => {
    request(url, { method: 'POST', headers })
      .on('error', reject)
      .on('response', (response) => response.resume().on('end', () => resolve(response.statusCode!)))
      .end(body)
  })
}

async function largeRefusedSends(scope: Scope): Promise<Outcome> {
  const { posthorn, victim } = await setStage(scope)
  const { secret } = await createSecret(posthorn)
  const url = `${posthorn.http}/v1/inboxes/inb_000000000000000000000000/messages`
  const send = (body: Buffer) => post(url, secret, body)
  await send(largeBodies[0]!)
  await settle()
  const statuses = new Set<number>()
  const times: number[] = []
  let isOver = false
  const stallMs = await stallDuring(posthorn, async () => {
    const flood = Array.from({ length: 4 }, async () => {
      for (let n = 0; n < 9; n++) statuses.add(await send(largeBodies[n % 3]!))
    })
    const over = Promise.all(flood).then(() => (isOver = true))
    while (!isOver) {
      const startMs = performance.now()
      await victim.call('/v1/me')
      times.push(performance.now() - startMs)
      await pause(20)
    }
    await over
  })
  const p95 = Math.round(times.sort((one, other) => one - other)[Math.floor(times.length * 0.95)]!)
  return {
    now: `all ${[...statuses].join(' ')}; the longest stall ${stallMs} ms; another's GET p95 ${p95} ms`,
    held: [...statuses].join(' ') === '404' && stallMs < 100,
  }
}

async function unfinishedRequests(scope: Scope): Promise<Outcome> {
  const { posthorn, victim } = await setStage(scope)
  const { api, secret } = await createSecret(posthorn)
  const inbox = await api.createInbox()
  const quiet = await victim.createInbox()
  await settle()
  const sockets: Socket[] = []
  scope.after(() => sockets.forEach((socket) => void socket.destroy()))
  const slowest: number[] = []
  const rose = await memoryDuring(posthorn.pid, async () => {
    for (let n = 0; n < 60; n++) sockets.push(await openUnfinished(posthorn.http, inbox.id, secret))
    for (let n = 0; n < 50; n++) {
      const startMs = performance.now()
      const body = { to: [{ email: 'a@healthy.test' }], subject: 'S', text: 'x'.repeat(20_000) }
      const path = `/v1/inboxes/${quiet.id}/messages`
      await victim.want(path, { method: 'POST', status: 202, idempotencyKey: randomUUID(), body })
      slowest.push(performance.now() - startMs)
      await pause(100)
    }
  })
  const worst = Math.round(Math.max(...slowest))
  return { now: `memory +${rose} MB; another's 50 sends all 202, ${worst} ms at most`, held: rose < 300 }
}

async function createSecret(posthorn: Parameters<typeof createCaller>[0]) {
  const { organizationId, api } = await createCaller(posthorn)
  const words = ['key', 'create', '--org', organizationId, '--name', 'flood', '--scopes', '*']
  const { secret } = await posthorn.cli<{ secret: string }>([...words, '--requests-per-minute', '1000000'])
  return { api, secret }
}

/** A request of 15 MiB whose last byte never comes. */
async function openUnfinished(http: string, inboxId: string, secret: string): Promise<Socket> {
  const { hostname, port } = new URL(http)
  const length = 15 << 20
  const head = `POST /v1/inboxes/${inboxId}/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${secret}\r\n`
  const rest = `idempotency-key: ${randomUUID()}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  const socket = connect(Number(port), hostname)
  // The service may refuse it and close the connection. The attack tests just that.
  socket.on('error', () => {})
  socket.resume()
  socket.write(head + rest)
  const written = new Promise<void>((resolve) => {
    socket.write(Buffer.alloc(length - 1, 0x20), () => resolve())
    socket.on('close', () => resolve())
  })
  await Promise.race([written, pause(2000)])
  return socket
}

const harvestMs = 5_000

/**
 * Runs as many concurrent sessions as allowed for five seconds. Counts the answered names and the existing ones among them.
 */
async function harvest(scope: Scope): Promise<Outcome> {
  // No address is trusted here, so the harvester's is an ordinary one.
  const { posthorn, victim } = await setStage(scope, { POSTHORN_SMTP_TRUSTED: '127.0.0.9/32' })
  const [early, late] = [await victim.createInbox('anna'), await victim.createInbox('zoe')]
  const names = [early.address, ...Array.from({ length: 1000 }, (_, n) => `no${n}@inbox.test`), late.address]
  const found = new Set<string>()
  const startMs = performance.now()
  let answered = 0
  for (let first = 0; first < names.length && performance.now() - startMs < harvestMs; ) {
    const sessions = Array.from({ length: 51 }, (_, n) => names.slice(first + n * 20, first + n * 20 + 20))
    const counts = await Promise.all(sessions.map((asked) => probe(posthorn.smtp, asked, found)))
    const count = counts.reduce((sum, one) => sum + one, 0)
    if (count === 0) await pause(200)
    answered += count
    first += count
  }
  const seconds = (performance.now() - startMs) / 1000
  return {
    now: `${answered} of ${names.length} names answered in ${seconds.toFixed(1)} s, ${found.size} of 2 inboxes found`,
    held: answered < 300 && found.size < 2,
  }
}

/** One session that asks for all names at once. Returns how many were answered before a refusal or the time limit. */
async function probe(smtp: { host: string; port: number }, names: string[], found: Set<string>) {
  const socket = connect({ ...smtp, localAddress: '127.0.0.7' })
  const wire = new Wire(socket)
  const timer = setTimeout(() => socket.destroy(), harvestMs)
  let answered = 0
  try {
    if (!(await wire.reply())?.startsWith('220')) return 0
    for (const command of ['EHLO x.test', 'MAIL FROM:<a@far.test>']) {
      await wire.write(`${command}\r\n`)
      if (!(await wire.reply())?.startsWith('250')) return 0
    }
    await wire.write(names.map((name) => `RCPT TO:<${name}>\r\n`).join(''))
    for (const name of names) {
      const reply = await wire.reply()
      if (!reply || reply.startsWith('4')) break
      answered++
      if (reply.startsWith('250')) found.add(name)
    }
    return answered
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

async function overDailyLimit(scope: Scope): Promise<Outcome> {
  const { posthorn, victim } = await setStage(scope)
  const flooded = await createCaller(posthorn)
  await posthorn.cli(['org', 'limits', flooded.organizationId, 'receivedMessagesPerDay=10'])
  const [target, quiet] = [await flooded.api.createInbox(), await victim.createInbox()]
  const raw = Buffer.from('From: a@far.test\r\nSubject: x\r\n\r\nHello.\r\n')
  const replies: string[] = []
  for (let n = 0; n < 15; n++)
    replies.push((await sendMail(posthorn.smtp, { from: 'a@far.test', to: target.address, raw })).reply)
  const other = await sendMail(posthorn.smtp, { from: 'a@far.test', to: quiet.address, raw })
  const taken = replies.filter((reply) => reply.startsWith('250')).length
  return {
    now: `${taken} of 15 taken at a limit of 10, then ${replies.at(-1)?.slice(0, 9)}; another's ${other.outcome}`,
    held: taken === 10 && /^452.4\.2\.2/.test(replies.at(-1) ?? '') && other.outcome === 'accepted',
  }
}

export const floodingAttacks: Attack[] = [
  {
    name: 'twelve 1 MB sends to an inbox that does not exist',
    before: 'all 404; the longest stall 5,511 ms',
    run: refusedSends,
  },
  {
    name: 'refused sends of 10 to 15 MB, four at a time',
    before: "all 404; the longest stall 337 ms; another's GET p95 403 ms",
    run: largeRefusedSends,
  },
  {
    name: '60 unfinished requests of 15 MiB by one key',
    before: 'memory +923 MB, for two minutes',
    run: unfinishedRequests,
  },
  {
    name: '1,002 recipients asked for by one address',
    before: 'all answered in 0.2 to 1.1 s, both inboxes found',
    run: harvest,
  },
  { name: 'more mail than an organization may receive in a day', before: 'no bound', run: overDailyLimit },
]
