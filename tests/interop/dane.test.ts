// Delivers by DANE: zones that knot signs, unbound that validates them, and mail servers with and without TLS.
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { before, test } from 'node:test'
import forge from 'node-forge'
import { SMTPServer } from 'smtp-server'
import type { Submission } from '../support/api.ts'
import { freePort } from '../support/free-port.ts'
import { makeCertificate } from '../support/make-certificate.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { nameServersMissing } from './name-servers.ts'
import { startSignedZones, zones } from './signed-zones.ts'

const missing = nameServersMissing()
before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

const keys = forge.pki.rsa.generateKeyPair(2048)
const rootKeys = forge.pki.rsa.generateKeyPair(2048)
const signedBy = rootKeys.privateKey
const root = makeCertificate({ subject: 'root', issuer: 'root', isAuthority: true, keys: rootKeys, signedBy })
const leaf = makeCertificate({ subject: 'leaf', issuer: 'root', host: `mx.${zones.signed}`, keys, signedBy })
const secureHost = '127.0.0.61'
const plainHost = '127.0.0.62'

async function startSecure(scope: Scope, port: number): Promise<void> {
  const server = new SMTPServer({
    key: forge.pki.privateKeyToPem(keys.privateKey),
    cert: leaf + root,
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    onData: (stream, _session, done) => void stream.resume().on('end', () => done()),
  })
  server.on('error', () => {})
  server.listen(port, secureHost)
  await once(server.server, 'listening')
  scope.after(() => new Promise<void>((resolve) => server.close(resolve)))
}

const digestOf = (pem: string) => createHash('sha256').update(new X509Certificate(pem).raw).digest('hex')
const wrong = '00'.repeat(32)

/** Domains by zone: the address of the mail server, its TLSA record, and the end of a mail to it. */
const domains: [zone: keyof typeof zones, name: string, host: string, tlsa: string | null, end: RegExp][] = [
  ['signed', 'ee', secureHost, `3 0 1 ${digestOf(leaf)}`, /^delivered dane$/],
  ['signed', 'ta', secureHost, `2 0 1 ${digestOf(root)}`, /^delivered dane$/],
  [
    'signed',
    'broken',
    secureHost,
    `3 0 1 ${wrong}`,
    /^pending .*DANE, by the TLSA records of .*in no record/,
  ],
  ['signed', 'stripped', plainHost, `3 0 1 ${digestOf(leaf)}`, /^pending .*the server does not start TLS/],
  ['signed', 'without', plainHost, null, /^delivered opportunistic$/],
  ['open', 'insecure', plainHost, `3 0 1 ${wrong}`, /^delivered opportunistic$/],
  ['forged', 'bogus', plainHost, null, /^pending .*SERVFAIL/],
]

/** For DANE-TA, all servers of the signed zone may have the certificate of one name: that of the recipients' domain. */
function linesOf(wanted: keyof typeof zones, port: number): string {
  const lines = domains
    .filter(([zone]) => zone === wanted)
    .flatMap(([, name, host, tlsa]) => {
      const mx = name === 'ta' ? 'mx' : `mx-${name}`
      const record = tlsa === null ? [] : [`_${port}._tcp.${mx} TLSA ${tlsa}`]
      return [`${name} MX 10 ${mx}`, `${mx} A ${host}`, ...record]
    })
  return `${lines.join('\n')}\n`
}

test('check 35: mail obeys DANE with knot and unbound', { skip: missing ?? false }, async (t) => {
  const port = await freePort()
  await startSecure(t, port)
  const plain = await startSink(t, { host: plainHost, port })
  const dns = await startSignedZones(t, {
    signed: linesOf('signed', port),
    open: linesOf('open', port),
    forged: linesOf('forged', port),
  })
  const node = await startNode(await makePlace(t), {
    roles: ['api', 'delivery'],
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns,
      POSTHORN_MX_PORT: String(port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await node.createCaller()
  const to = domains.map(([zone, name]) => `someone@${name}.${zones[zone]}`)
  const { submission } = await send(api, await api.createInbox(), to)
  const { recipients } = await until('each recipient to have an answer', async () => {
    const shown = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    return shown.recipients.every(({ status, response }) => status === 'delivered' || response) ? shown : null
  })
  const sql = `select recipient, remote->>'policy' as policy from event where submission_id = $1 and type = 'delivered'`
  const events = await node.foundation.db.query<{ recipient: string; policy: string }>(sql, [submission.id])
  for (const [index, [, name, , , end]] of domains.entries()) {
    const { status, response, email } = recipients[index]!
    const delivered = events.find(({ recipient }) => recipient === email)
    const said = status === 'delivered' ? `delivered ${delivered?.policy}` : `${status} ${response}`
    assert.match(said, end, name)
  }
  assert.deepEqual(plain.copies.map(({ recipient }) => recipient.split('@')[1]!.split('.')[0]).sort(), [
    'insecure',
    'without',
  ])
})
