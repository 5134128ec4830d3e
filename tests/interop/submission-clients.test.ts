// Postfix and Exim as relays of their users' mail, and a mailer of npm: each sends over both submission ports.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { SMTPClient } from 'emailjs'
import { trustAuthority } from '../support/certificates.ts'
import { type Deployment, deploy, makeSender } from '../support/deployment.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { findExim, startExim } from './exim.ts'
import type { Neighbour } from './neighbour.ts'
import { postfixMissing, startPostfix } from './postfix.ts'

const exim = findExim()
const missing = { postfix: postfixMissing(), exim: 'missing' in exim ? exim.missing : null, emailjs: null }
before(() => {
  const absent = Object.values(missing).filter((reason) => reason !== null)
  assert.ok(!process.env['CI'] || absent.length === 0, `in CI nothing is skipped: ${absent.join('; ')}`)
})

const ports = ['submission', 'submissions'] as const
type PortName = (typeof ports)[number]
/** The name in the certificate of the submission ports. */
const host = 'submit.test'

/** A mail of one user, and how it ends. */
interface Case {
  name: string
  /** Null: the client does not log in. */
  secret: string | null
  from: string
  purpose: 'transactional' | 'marketing'
  text: string
  end: RegExp
}

async function makeCases(deployment: Deployment): Promise<Case[]> {
  const sender = await makeSender(deployment)
  const stranger = await makeSender(deployment)
  const limited = await makeSender(deployment, { limits: { messagesPerDay: 1, messageContentBytes: 2_000 } })
  const busy = await deployment.nodes[0]!.createCaller({ limits: { requestsPerMinute: 0 } })
  const usual = {
    secret: sender.secret,
    from: sender.inbox.address,
    purpose: 'transactional',
    text: 'Hi.',
  } as const
  const short = { ...usual, secret: limited.secret, from: limited.inbox.address }
  return [
    { ...usual, name: 'sent', end: /250 2\.0\.0 Ok: queued as |^sent$/ },
    { ...usual, name: 'unknown', secret: 'ph_wrong', end: /535 5\.7\.8 / },
    { ...usual, name: 'anonymous', secret: null, end: /530 5\.7\.0 / },
    { ...usual, name: 'stranger', from: stranger.inbox.address, end: /550 5\.7\.1 .*\(sender_not_allowed\)/ },
    {
      ...short,
      name: 'large',
      text: 'x'.repeat(60).concat('\r\n').repeat(50),
      end: /552 5\.3\.4 .*\(message_too_large\)/,
    },
    { ...short, name: 'limited', end: /452 4\.7\.0 .*\(send_limit_exceeded\)/ },
    { ...usual, name: 'busy', secret: busy.secret, end: /451 4\.7\.0 .*\(rate_limited\)/ },
    { ...usual, name: 'marketing', purpose: 'marketing', end: /554 5\.7\.1 .*\(marketing_not_available\)/ },
  ]
}

interface Servers {
  cases: Case[]
  ports: Record<PortName, number>
  /** The file of the authority's certificate. */
  authority: string
}

/** Hands the mail to a client program. Resolves with the server's reply as the program reports it. */
type Send = (one: Case, port: PortName) => Promise<string>

/** A folder that the users of the relays may enter. */
function makeFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-submission-'))
  chmodSync(folder, 0o755)
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const recipientOf = ({ name }: Case, port: PortName, client: string) => `${name}-${port}-${client}@far.test`

/** The users of a relay have the envelope address `<case>@<port>.test`, by which the relay chooses the port and the key. */
const userOf = ({ name }: Case, port: PortName) => `${name}@${port}.test`

const users = ({ cases }: Servers) =>
  ports.flatMap((port) => cases.map((one) => ({ one, port, user: userOf(one, port) })))

/** Sends through a relay. `read` finds the reply in the relay's log. */
function through(
  relay: Neighbour,
  client: string,
  read: (log: string, recipient: string) => string | null,
): Send {
  return async (one, port) => {
    const to = recipientOf(one, port, client)
    const fields = [
      `From: <${one.from}>`,
      `To: <${to}>`,
      `Subject: ${one.name}`,
      `X-Posthorn-Purpose: ${one.purpose}`,
    ]
    const raw = Buffer.from(`${fields.join('\r\n')}\r\n\r\n${one.text}\r\n`)
    const sent = await sendMail(relay, { from: userOf(one, port), to, raw })
    assert.equal(sent.outcome, 'accepted', sent.reply)
    return await until(`${client} to log the reply about ${to}`, () =>
      read(readFileSync(relay.logFile, 'utf8'), to),
    )
  }
}

async function relayByPostfix(scope: Scope, servers: Servers): Promise<Send> {
  const keys = users(servers).flatMap(({ one, user }) =>
    one.secret ? [`{${user} = any:${one.secret}}`] : [],
  )
  const implicit = users(servers)
    .filter(({ port }) => port === 'submissions')
    .map(({ user }) => `{${user} = submissions:[127.0.0.1]:${servers.ports.submissions}}`)
  const settings = `smtp_sasl_auth_enable = yes
smtp_sender_dependent_authentication = yes
smtp_sasl_security_options = noanonymous
smtp_sasl_password_maps = inline:{${keys.join(', ')}}
sender_dependent_default_transport_maps = inline:{${implicit.join(', ')}}
smtp_tls_security_level = secure
smtp_tls_secure_cert_match = ${host}
smtp_tls_CAfile = ${servers.authority}
default_destination_concurrency_failed_cohort_limit = 1000
`
  // Without the last setting, a wrong password of one user would hold back the mail of the others.
  const services = 'submissions unix - - n - - smtp -o smtp_tls_wrappermode=yes\n'
  const relay = { host: '127.0.0.1', port: servers.ports.submission }
  const postfix = await startPostfix(scope, relay, { settings, services })
  return through(postfix, 'postfix', (log, to) => {
    const line = log.split('\n').find((text) => text.includes(`to=<${to}>`))
    return /status=\w+ \((.*)\)$/.exec(line ?? '')?.[1] ?? null
  })
}

async function relayByExim(scope: Scope, servers: Servers): Promise<Send> {
  const folder = makeFolder(scope)
  const keys = users(servers).flatMap(({ one, user }) => (one.secret ? [`${user}: ${one.secret}`] : []))
  const file = join(folder, 'keys')
  writeFileSync(file, `${keys.join('\n')}\n`)
  const secret = `\${lookup{$sender_address}lsearch{${file}}}`
  const routers = ports.map(
    (port) => `${port}:
  driver = manualroute
  senders = *@${port}.test
  route_list = * 127.0.0.1::${servers.ports[port]}
  self = send
  transport = ${port}
`,
  )
  const transports = ports.map(
    (port) => `${port}:
  driver = smtp
  allow_localhost
  protocol = ${port === 'submissions' ? 'smtps' : 'smtp'}
  hosts_require_tls = *
  hosts_require_auth = \${lookup{$sender_address}lsearch{${file}}{*}{}}
  tls_verify_certificates = ${servers.authority}
  tls_verify_hosts = *
  tls_verify_cert_hostnames =
`,
  )
  const authenticators = `plain:
  driver = plaintext
  public_name = PLAIN
  client_condition = \${lookup{$sender_address}lsearch{${file}}{yes}{no}}
  client_send = ^any^${secret}
`
  const away = { routers: routers.join(''), transports: transports.join(''), authenticators }
  const nowhere = { host: '127.0.0.1', port: 9 }
  const relay = await startExim(scope, 'folder' in exim ? exim.folder : '', nowhere, { away })
  return through(relay, 'exim', (log, to) => {
    const line = log.split('\n').find((text) => text.includes(` ${to} `))
    // The reply to AUTH is in a line of its own.
    return line && /authentication attempt/.test(line)
      ? /authenticator failed .*/.exec(log)![0]
      : (line ?? null)
  })
}

interface SmtpFault {
  smtp?: string
  previous?: SmtpFault | null
}

async function mailByEmailjs(_scope: Scope, { ports: numbers, authority }: Servers): Promise<Send> {
  const tls = { ca: readFileSync(authority, 'utf8'), servername: host }
  return async (one, port) => {
    const client = new SMTPClient({
      host: '127.0.0.1',
      port: numbers[port],
      ...(one.secret && { user: 'any', password: one.secret }),
      ...(port === 'submissions' ? { ssl: tls } : { tls }),
    })
    const message = {
      from: one.from,
      to: recipientOf(one, port, 'emailjs'),
      subject: one.name,
      text: one.text,
      'x-posthorn-purpose': one.purpose,
    }
    try {
      await client.sendAsync(message)
      return 'sent'
    } catch (error) {
      // Its error has the reply of the server.
      const { previous, smtp = previous?.smtp } = error as SmtpFault
      return String(smtp ?? error)
    } finally {
      client.smtp.close()
    }
  }
}

const clients: [name: keyof typeof missing, start: (scope: Scope, servers: Servers) => Promise<Send>][] = [
  ['postfix', relayByPostfix],
  ['exim', relayByExim],
  ['emailjs', mailByEmailjs],
]

test('relays and a mailer of npm send over both submission ports, and report each refusal', async (t) => {
  const authority = trustAuthority(t)
  const folder = makeFolder(t)
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const { key, cert } = authority.issue(host)
  const sink = await startSink(t)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_SUBMISSION: '127.0.0.1:0',
    POSTHORN_SUBMISSIONS: '127.0.0.1:0',
    POSTHORN_SMTP_TLS_CERT: write('cert.pem', cert),
    POSTHORN_SMTP_TLS_KEY: write('key.pem', key),
  }
  const deployment = await deploy(t, { nodes: 1, env, roles: ['api', 'delivery'] })
  const { listening } = deployment.nodes[0]!.app
  const servers = {
    cases: await makeCases(deployment),
    ports: { submission: listening.submission!.port, submissions: listening.submissions!.port },
    authority: write('authority.pem', authority.cert),
  }
  await Promise.all(
    clients.map(([name, start]) =>
      t.test(name, { skip: missing[name] ?? false }, async (client) => {
        const send = await start(client, servers)
        await Promise.all(ports.map((port) => sendAll(send, { name, port, servers, sink })))
      }),
    ),
  )
})

async function sendAll(
  send: Send,
  { name, port, servers, sink }: { name: string; port: PortName; servers: Servers; sink: Sink },
): Promise<void> {
  const replies = await Promise.all(servers.cases.map((one) => send(one, port)))
  for (const [index, one] of servers.cases.entries())
    assert.match(replies[index]!, one.end, `${name} over ${port}: ${one.name}`)
  const to = recipientOf(servers.cases[0]!, port, name)
  const { raw } = await until(`the mail to ${to}`, () =>
    sink.copies.find(({ recipient }) => recipient === to),
  )
  assert.match(raw.toString('latin1'), /^Received: by \S+ \(Posthorn\) with ESMTPSA id /)
}
