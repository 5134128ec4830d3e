// Sends a customer's mail to an independent server: Postfix accepts it, opendkim verifies it, opendmarc checks alignment.
import assert from 'node:assert/strict'
import { createServer, connect as open, type Socket } from 'node:net'
import { before, type TestContext, test } from 'node:test'
import type { Acceptance, Inbox, Submission } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { type Milters, miltersMissing, startMilters } from './milters.ts'
import { postfixMissing, startPostfix } from './postfix.ts'

const missing = postfixMissing() ?? miltersMissing()
const mailHost = 'mx.posthorn.test'
// SPF always passes loopback and our own networks, so Postfix sees unassigned addresses.
const [ours, strangers] = ['203.0.113.7', '198.51.100.9']
// An address for this run only, because the milters' resolvers know only port 53.
const dnsHost = `127.53.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`

before(() => {
  if (missing && process.env['CI'] && process.getuid?.() === 0)
    assert.fail(`in CI nothing is skipped: ${missing}`)
  if (missing) console.log(`customers' mail is not judged by Postfix, opendkim and opendmarc: ${missing}`)
})

/** Opens a port before `target` that announces, by the PROXY protocol, clients from `address()`. */
async function startProxy(scope: Scope, target: { port: number }, address: () => string): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const inner = open(target.port, '127.0.0.1')
    inner.write(`PROXY TCP4 ${address()} 192.0.2.25 4000 25\r\n`)
    for (const socket of [client, inner]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    client.pipe(inner).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(() => resolve()))
  })
  return (server.address() as { port: number }).port
}

interface Stage {
  dns: DnsServer
  milters: Milters
  kept(): string[]
  /** The address from which Postfix believes mail to come. */
  client: string
  port: number
}

async function setStage(t: TestContext): Promise<Stage> {
  const dns = await DnsServer.start(
    {
      'postfix.test': { MX: [[10, 'in.postfix.test']] },
      'in.postfix.test': { A: ['127.0.0.1'] },
      [mailHost]: { A: [ours] },
    },
    { host: dnsHost, port: 53 },
  )
  t.after(() => dns.close())
  const milters = await startMilters(t, dnsHost)
  const settings = `smtpd_milters = ${milters.chain}\nmilter_default_action = tempfail\nsmtpd_upstream_proxy_protocol = haproxy\n`
  const postfix = await startPostfix(t, { host: '127.0.0.1', port: 9 }, { settings })
  const stage = { dns, milters, kept: () => postfix.kept().map(String), client: ours, port: 0 }
  stage.port = await startProxy(t, postfix, () => stage.client)
  return stage
}

/** Returns the fields that Postfix's milters wrote above the message, unfolded. */
const results = (raw: string) =>
  [
    ...raw
      .split('\n\n')[0]!
      .replace(/\n[ \t]+/g, ' ')
      .matchAll(/^Authentication-Results: (.*)$/gm),
  ].map(([, value]) => value!)

test('Postfix gets a customer’s mail, opendkim verifies both signatures, and opendmarc passes it', {
  skip: missing ?? false,
}, async (t) => {
  const stage = await setStage(t)
  const { dns, milters } = stage
  const env = {
    POSTHORN_DNS: dns.address,
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_MX_PORT: String(stage.port),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_MAIL_HOST: mailHost,
    POSTHORN_MANAGED_DOMAIN: 'inbox.test',
  }
  const posthorn = await startPosthorn(t, { env })
  const { api } = await createCaller(posthorn, {})
  const domain = await proveDomain(api, dns, 'green.example', ['outbound'])
  const body = { domainId: domain.id, localPart: 'desk', displayName: 'Das Grüne Tischchen' }
  const inbox = await api.want<Inbox>('/v1/inboxes', { method: 'POST', body, status: 201 })
  const mail = { to: [{ email: 'box@postfix.test', name: 'Box' }], subject: 'Grüße', text: 'Hello.\n.\nä' }
  const call = { method: 'POST', status: 202 }
  const { submission } = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    ...call,
    body: mail,
    idempotencyKey: 'from-the-inbox',
  })
  const through = await api.want<Submission>('/v1/send', {
    ...call,
    body: { ...mail, from: { email: 'x@green.example' } },
    idempotencyKey: 'through-the-domain',
  })
  await arrived([submission, through])
  const kept = await until('both mails to be kept', () => (stage.kept().length === 2 ? stage.kept() : null))
  for (const raw of kept) {
    assert.match(raw, /^Return-Path: <bounce-[a-z2-7]{48}@bounce\.green\.example>$/m)
    const [dmarc = '', dkim = ''] = [/dmarc=/, /dkim=/].map((wanted) =>
      results(raw).find((text) => wanted.test(text)),
    )
    assert.equal(dkim.match(/dkim=pass (?:\([^)]*\) )?header\.d=green\.example/g)?.length, 2, dkim)
    assert.match(dmarc, /dmarc=pass .*header\.from=green\.example/)
    assert.ok(
      results(raw).some((text) => /spf=pass smtp\.mailfrom=.*bounce\.green\.example/.test(text)),
      raw,
    )
  }
  const verdicts = (count: number) =>
    until(`${count} verdicts`, () => (milters.verdicts().length === count ? milters.verdicts() : null))
  const aligned = (await verdicts(2)).map((verdict) => [
    verdict['align_dkim'],
    verdict['align_spf'],
    verdict['policy'],
  ])
  // opendmarc writes 4 for an aligned identifier, 5 for an unaligned one, and 15 for a message that passes.
  assert.deepEqual(aligned, [
    ['4', '4', '15'],
    ['4', '4', '15'],
  ])

  // The verifiers can also say no: from elsewhere SPF fails, and DMARC passes by DKIM alone. A restart is needed, because
  // an open connection keeps its client address.
  await posthorn.stop()
  stage.client = strangers
  await posthorn.start()
  const elsewhere = await api.want<Submission>('/v1/send', {
    ...call,
    body: { ...mail, from: { email: 'x@green.example' } },
    idempotencyKey: 'from-elsewhere',
  })
  await arrived([elsewhere])
  const last = (await verdicts(3)).at(-1)!
  assert.deepEqual([last['align_dkim'], last['align_spf'], last['policy']], ['4', '5', '15'])

  async function arrived(submissions: { id: string }[]): Promise<void> {
    for (const { id } of submissions)
      await until('the submission to be delivered', async () => {
        const { status } = await api.want<Submission>(`/v1/submissions/${id}`)
        assert.notEqual(status, 'failed')
        return status === 'delivered'
      })
  }
})
