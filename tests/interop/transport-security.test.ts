// Prints a table of mail to five mail servers, as their domains require TLS: delivered or deferred, and never downgraded.
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import { before, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import type { Submission } from '../support/api.ts'
import { type Authority, type Identity, trustAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, send, startNode, type TestNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { nameServersMissing } from './name-servers.ts'
import { type Receiver, receivers } from './receivers.ts'
import { startSignedZones, zones } from './signed-zones.ts'

const isRoot = process.getuid?.() === 0
const missing = isRoot ? nameServersMissing() : 'only root can have port 443, at which policies are fetched'

before(() => {
  const absent = receivers.flatMap(({ name, missing: reason }) => (reason ? [`${name}: ${reason}`] : []))
  const isComplete = !missing && absent.length === 0
  assert.ok(!process.env['CI'] || !isRoot || isComplete, `in CI nothing is skipped: ${missing} ${absent}`)
})

const policyHost = '127.0.1.80'
/** No policy host listens there. */
const downHost = '127.0.1.81'
const faultyHosts = { named: '127.0.1.11', expired: '127.0.1.12', selfSigned: '127.0.1.13' }
const wildcard = `*.${zones.signed}`

interface Row {
  title: string
  /** The label of its domains. */
  label: string
  /** The listener: without TLS, with STARTTLS, or with a faulty certificate (Postfix alone). */
  at: 'plain' | 'secure' | keyof typeof faultyHosts
  tlsa?: 'server' | 'anchor' | 'wrong'
  sts?: 'enforce' | 'testing'
  /** A policy host that is down, or a policy that names another mail server. */
  policy?: 'down' | 'other'
  /** A zone without DNSSEC, or with false signatures. */
  zone?: 'open' | 'forged'
  /** The end of a mail. If it is absent, or the listener has no TLS, the end follows from the requirement. */
  end?: RegExp
}

const rows: Row[] = [
  { title: 'plain', label: 'plain', at: 'plain' },
  { title: 'STARTTLS', label: 'starttls', at: 'secure', end: /^delivered, TLS, opportunistic$/ },
  {
    title: 'MTA-STS enforce',
    label: 'enforce',
    at: 'secure',
    sts: 'enforce',
    end: /^delivered, TLS, mta-sts enforce$/,
  },
  {
    title: 'MTA-STS testing',
    label: 'testing',
    at: 'secure',
    sts: 'testing',
    end: /^delivered, TLS, mta-sts testing$/,
  },
  { title: 'DANE-EE', label: 'ee', at: 'secure', tlsa: 'server', end: /^delivered, TLS, dane$/ },
  { title: 'DANE-TA', label: 'ta', at: 'secure', tlsa: 'anchor', end: /^delivered, TLS, dane$/ },
  {
    title: 'broken DANE',
    label: 'broken',
    at: 'secure',
    tlsa: 'wrong',
    end: /^deferred: DANE.*in no record/,
  },
  { title: 'MTA-STS enforce, STARTTLS stripped', label: 'stripped', at: 'plain', sts: 'enforce' },
  { title: 'MTA-STS testing, STARTTLS stripped', label: 'tested', at: 'plain', sts: 'testing' },
  { title: 'DANE-EE, STARTTLS stripped', label: 'bare', at: 'plain', tlsa: 'server' },
]

/** Rows about the domain and the certificate rather than the server. */
const furtherRows: Row[] = [
  {
    title: 'MTA-STS enforce, certificate for another name',
    label: 'named',
    at: 'named',
    sts: 'enforce',
    end: /^deferred: .*its certificate is not for mx-postfix-named\./,
  },
  {
    title: 'MTA-STS enforce, expired certificate',
    label: 'expired',
    at: 'expired',
    sts: 'enforce',
    end: /^deferred: .*its certificate has expired$/,
  },
  {
    title: 'MTA-STS enforce, self-signed certificate',
    label: 'self',
    at: 'selfSigned',
    sts: 'enforce',
    end: /^deferred: .*its certificate is self-signed$/,
  },
  {
    title: 'MTA-STS enforce, MX not in the policy',
    label: 'unlisted',
    at: 'secure',
    sts: 'enforce',
    policy: 'other',
    end: /^deferred: .*does not name this mail server$/,
  },
  {
    title: 'MTA-STS enforce, policy host down',
    label: 'down',
    at: 'secure',
    sts: 'enforce',
    policy: 'down',
    end: /^delivered, TLS, opportunistic$/,
  },
  {
    title: 'DANE-EE, expired certificate',
    label: 'old',
    at: 'expired',
    tlsa: 'server',
    end: /^delivered, TLS, dane$/,
  },
  {
    title: 'broken DANE, MTA-STS testing',
    label: 'both',
    at: 'secure',
    tlsa: 'wrong',
    sts: 'testing',
    end: /^deferred: DANE.*in no record/,
  },
  {
    title: 'broken DANE in a zone without DNSSEC',
    label: 'insecure',
    at: 'plain',
    tlsa: 'wrong',
    zone: 'open',
    end: /^delivered, plaintext, opportunistic$/,
  },
  {
    title: 'zone with false signatures',
    label: 'bogus',
    at: 'plain',
    zone: 'forged',
    end: /^deferred: .*SERVFAIL/,
  },
]

interface Cell {
  row: Row
  receiver: Receiver
  host: string
  isSecure: boolean
  /** Below its zone. */
  name: string
}

function cellsOf(receiver: Receiver): Cell[] {
  const all = receiver.name === 'postfix' ? [...rows, ...furtherRows] : rows
  return all.map((row) => {
    const { plain, secure } = receiver.hosts
    const own = { plain, secure: secure ?? plain, ...faultyHosts }
    const isSecure = row.at !== 'plain' && secure !== null
    return { row, receiver, host: own[row.at], isSecure, name: `${receiver.name}-${row.label}` }
  })
}

/** A server that does not start TLS gets no mail for a domain that requires TLS. */
function endOf({ row: { end, sts, tlsa, zone }, isSecure }: Cell): RegExp {
  if (end && (isSecure || zone)) return end
  // RFC 7672 2.2, RFC 8461 5: neither falls back to plaintext.
  if (tlsa || sts === 'enforce') return /^deferred: .*the server does not start TLS$/
  return sts ? /^delivered, plaintext, mta-sts testing, violated$/ : /^delivered, plaintext, opportunistic$/
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

function associations(leaf: string, root: string): Record<NonNullable<Row['tlsa']>, string> {
  const key = new X509Certificate(leaf).publicKey.export({ type: 'spki', format: 'der' })
  return {
    server: `3 1 1 ${digest(key)}`,
    anchor: `2 0 1 ${digest(new X509Certificate(root).raw)}`,
    wrong: `3 1 1 ${'00'.repeat(32)}`,
  }
}

function recordsOf({ name, host, row }: Cell, port: number, tlsa: ReturnType<typeof associations>): string {
  const lines = [`${name} MX 10 mx-${name}`, `mx-${name} A ${host}`]
  if (row.tlsa) lines.push(`_${port}._tcp.mx-${name} TLSA ${tlsa[row.tlsa]}`)
  if (row.sts) {
    lines.push(`_mta-sts.${name} TXT "v=STSv1; id=1"`)
    lines.push(`mta-sts.${name} A ${row.policy === 'down' ? downHost : policyHost}`)
  }
  return `${lines.join('\n')}\n`
}

/** Serves the policy of each domain over HTTPS, with a certificate of the authority. */
async function startPolicyHost(scope: Scope, authority: Authority, cells: readonly Cell[]): Promise<void> {
  const texts = new Map(
    cells.map(({ name, row: { sts, policy } }) => {
      const mx = policy === 'other' ? `mx.other.${zones.signed}` : wildcard
      return [`mta-sts.${name}.${zones.signed}`, `version: STSv1\nmode: ${sts}\nmx: ${mx}\nmax_age: 604800\n`]
    }),
  )
  const server = createServer(
    { SNICallback: (host, done) => done(null, createSecureContext(authority.issue(host))) },
    ({ headers: { host = '' } }, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).end(texts.get(host))
    },
  )
  server.listen(443, policyHost)
  await once(server, 'listening')
  scope.after(() => void server.close())
}

const zoneOf = ({ row: { zone } }: Cell): keyof typeof zones => zone ?? 'signed'
const addressOf = (cell: Cell) => `someone@${cell.name}.${zones[zoneOf(cell)]}`

/** Sends a mail to each domain, and returns how each ended, in the same order. */
async function mailTo({ createCaller, foundation }: TestNode, cells: readonly Cell[]): Promise<string[]> {
  const { api } = await createCaller()
  const inbox = await api.createInbox()
  const ids: string[] = []
  for (const cell of cells) ids.push((await send(api, inbox, [addressOf(cell)])).submission.id)
  const ends: string[] = []
  for (const id of ids) {
    const [recipient] = await until(`an answer about ${cells[ends.length]!.name}`, async () => {
      const { recipients } = await api.want<Submission>(`/v1/submissions/${id}`)
      return recipients.every(({ status, response }) => status === 'delivered' || response)
        ? recipients
        : null
    })
    const { status, response } = recipient!
    const reason = response?.replace(/^.*?\]: /, '')
    ends.push(status === 'delivered' ? 'delivered' : status === 'pending' ? `deferred: ${reason}` : status)
  }
  const sql = `select submission_id as id, remote from event where submission_id = any($1) and type = 'delivered'`
  const events = await foundation.db.query<{ id: string; remote: Record<string, string> }>(sql, [ids])
  for (const { id, remote } of events)
    ends[ids.indexOf(id)] += `, ${remote['policy']}${remote['violation'] ? ', violated' : ''}`
  return ends
}

function print(cells: readonly Cell[], ends: readonly string[]): void {
  const names = receivers.map(({ name }) => name)
  const lines = [...rows, ...furtherRows].map((row) => {
    const found = names.map((name) =>
      cells.findIndex((cell) => cell.row === row && cell.receiver.name === name),
    )
    return [row.title, ...found.map((index) => ends[index]?.replace(/:.*/, '') ?? '–')]
  })
  const table = [['', ...names], ...lines]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
  for (const line of table)
    console.log(
      line
        .map((text, column) => text.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
  for (const { name, missing: reason } of receivers) if (reason) console.log(`${name} is missing: ${reason}`)
}

function faultyIdentities(authority: Authority): { host: string; identity: Identity }[] {
  return [
    { host: faultyHosts.named, identity: authority.issue('mx.other.example') },
    { host: faultyHosts.expired, identity: authority.issue(wildcard, { toDays: -1 }) },
    { host: faultyHosts.selfSigned, identity: authority.issue(wildcard, { isSelfSigned: true }) },
  ]
}

test('check 35: mail to five mail servers is delivered or deferred as their domains require, and never downgraded', {
  skip: missing ?? false,
}, async (t) => {
  const authority = trustAuthority(t)
  const { key, cert: leaf } = authority.issue(wildcard)
  const [port, onward] = [await freePort(), await startSink(t)]
  const present = receivers.filter(({ missing: reason }) => reason === null)
  const cells = present.flatMap(cellsOf)
  const identity = { key, cert: leaf + authority.cert }
  const stage = { port, identity, others: faultyIdentities(authority), onward }
  const tlsa = associations(leaf, authority.cert)
  const linesOf = (zone: keyof typeof zones) =>
    cells
      .filter((cell) => zoneOf(cell) === zone)
      .map((cell) => recordsOf(cell, port, tlsa))
      .join('')
  const lines = { signed: linesOf('signed'), open: linesOf('open'), forged: linesOf('forged') }
  const [dns, accepted] = await Promise.all([
    startSignedZones(t, lines),
    Promise.all(present.map((receiver) => receiver.start(t, stage))),
    startPolicyHost(t, authority, cells),
  ])
  const node = await startNode(await makePlace(t), {
    roles: ['api', 'delivery'],
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns,
      POSTHORN_MX_PORT: String(port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const ends = await mailTo(node, cells)
  const delivered = cells.filter((_, index) => ends[index]!.startsWith('delivered'))
  const kept = await until('each delivered mail to be kept by its receiver', () => {
    const mails = new Map(accepted.flatMap((list) => list()).map((mail) => [mail.recipient, mail]))
    return delivered.every((cell) => mails.has(addressOf(cell))) ? mails : null
  })
  // The receiver says whether the mail came within TLS.
  for (const [index, cell] of cells.entries()) {
    const how = kept.get(addressOf(cell))?.isEncrypted ? 'TLS' : 'plaintext'
    ends[index] = ends[index]!.replace(/^delivered/, `delivered, ${how}`)
  }
  print(cells, ends)
  for (const [index, cell] of cells.entries()) assert.match(ends[index]!, endOf(cell), cell.name)
  assert.equal(kept.size, delivered.length, 'no server has a mail that was not delivered')
})
