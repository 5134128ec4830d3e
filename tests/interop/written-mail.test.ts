// Submits the published mails by SMTP: each arrives byte for byte below our fields, and other programs verify our signature.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Domain, proveDomain } from '../support/customer-domain.ts'
import { deploy } from '../support/deployment.ts'
import { type DkimRecords, findJudges } from '../support/dkim-judges.ts'
import { type PublishedMail, publishedMails } from '../support/oracle.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { stuff } from '../support/wire.ts'
import { Talk } from '../wire/talk.ts'

const mails = publishedMails()
const skip = mails.length === 0 ? 'the published suites are absent (POSTHORN_TESTDATA)' : false
const ownDomain = 'sender.example'

interface Parts {
  /** Each with its line ends inside, and without the last one. */
  fields: string[]
  body: string
}

/** RFC 5322 2.1: without an empty line all of it is header. */
function split(raw: string): Parts {
  const end = raw.startsWith('\r\n') ? -2 : raw.indexOf('\r\n\r\n')
  const header = raw.slice(0, end === -1 ? raw.length : Math.max(0, end))
  const fields = header.split(/\r\n(?![\t ])/).filter((field) => field !== '')
  return { fields, body: end === -1 ? '' : raw.slice(end + 4) }
}

const nameOf = (field: string) => field.split(':', 1)[0]!.trimEnd().toLowerCase()

/** The domain that the mail's one From field names, if it names one. */
function authorDomain({ fields }: Parts): string | null {
  const from = fields.filter((field) => nameOf(field) === 'from')
  return from.length === 1 ? (/@([a-z0-9.-]+)>?\s*$/i.exec(from[0]!)?.[1]?.toLowerCase() ?? null) : null
}

interface Written {
  name: string
  recipient: string
  /** The bytes that are submitted, with the line end that SMTP adds. */
  raw: string
  /** Whether its From field was replaced by one of a proved domain. */
  isAdapted: boolean
}

function write({ name, crlf }: PublishedMail, index: number, proved: ReadonlySet<string>): Written {
  const given = crlf.toString('latin1')
  const parts = split(given)
  const isAdapted = !proved.has(authorDomain(parts) ?? '')
  const others = parts.fields.filter((field) => nameOf(field) !== 'from')
  const adapted = [`From: hello@${ownDomain}`, ...others, '', parts.body].join('\r\n')
  const raw = isAdapted ? adapted : given
  return {
    name,
    recipient: `mail-${index}@far.test`,
    raw: raw.endsWith('\r\n') ? raw : `${raw}\r\n`,
    isAdapted,
  }
}

/** Submits the mail in a connection of its own. Returns the last reply. */
async function submit(
  scope: Parameters<typeof Talk.connect>[0],
  port: number,
  secret: string,
  mail: Written,
) {
  const talk = await Talk.connect(scope, port)
  await talk.secure()
  await talk.reply()
  const isWide = /[^\x00-\x7f]/.test(split(mail.raw).fields.join(''))
  const login = Buffer.from(`\0a\0${secret}`).toString('base64')
  for (const line of [
    'EHLO c.test',
    `AUTH PLAIN ${login}`,
    `MAIL FROM:<a@c.test> BODY=8BITMIME${isWide ? ' SMTPUTF8' : ''}`,
    `RCPT TO:<${mail.recipient}>`,
    'DATA',
  ])
    assert.match((await talk.ask(line)) ?? '', /^[23]/, line)
  talk.write(stuff(Buffer.from(mail.raw, 'latin1')))
  const answer = (await talk.reply()) ?? ''
  talk.destroy()
  return answer
}

/** Mails that must not be sent as they are, by the reply. All others are accepted. */
const refusals: [reply: RegExp, names: string[]][] = [
  [
    /^554 5\.6\.0 Line \d+ of the header is no header field/,
    [
      ...[19, 25, 35, 43].map((number) => `mime-cpython/msg_${number}.txt`),
      ...['basic-plain-with-bad-header-separator', 'malformedHeader-nocrlfcrlf', 'malformedHeader-noheader'],
      ...['malformedHeaderStartsBody-nocrlfcrlf', 'malformedHeaderStartsBody-noheader', 'obsolete'],
    ].map((name) => (name.includes('/') ? name : `mime-mime4j/${name}.msg`)),
  ],
  [
    /^554 5\.6\.0 The Sender field must have one address, of the domain of From/,
    [
      ...['06', '16', '32', '33'].map((number) => `mime-cpython/msg_${number}.txt`),
      'mime-postalsys/calendar-event.eml',
    ],
  ],
  [/^554 5\.6\.0 The header has more than one cc field/, ['mime-cpython/msg_20.txt']],
  [/^554 5\.6\.0 The header has more than one message-id field/, ['mime-stalwart/malformed/019.eml']],
  [/^550 5\.6\.0 Message contains a bare CR, a bare LF or a NUL/, ['mime-stalwart/thirdparty/005.eml']],
]

const removed = ['bcc', 'resent-bcc', 'return-path']

interface Compared {
  /** The copy without the signatures that the mail had before; with all of ours, and with that by RSA alone. */
  signed: { all: Buffer; rsa: Buffer }
  /** The fields that were removed and added. */
  changes: string
}

/**
 * Compares the copy with the mail. Throws if anything below the fields of the delivery differs, apart from the fields that
 * docs/submission.md says are removed or added.
 */
function compare({ name, raw }: Written, copy: string): Compared {
  const [given, come] = [split(raw), split(copy)]
  assert.equal(come.body, given.body, `${name}: another body`)
  const ids = given.fields.filter((field) => nameOf(field) === 'message-id')
  // RFC 6409 8.3: an invalid Message-ID may be replaced.
  const isIdKept = ids.length > 0 && come.fields.includes(ids[0]!)
  const kept = given.fields.filter(
    (field) => !removed.includes(nameOf(field)) && (isIdKept || nameOf(field) !== 'message-id'),
  )
  const missing = given.fields.some((field) => nameOf(field) === 'date') ? [] : ['date']
  if (!isIdKept) missing.push('message-id')
  const traceCount = come.fields.length - kept.length - missing.length
  const trace = come.fields.slice(0, traceCount)
  for (const field of trace)
    assert.match(field, /^(Received: by localhost \(Posthorn\) |DKIM-Signature: )/, name)
  assert.deepEqual(come.fields.slice(traceCount, traceCount + kept.length), kept, name)
  assert.deepEqual(come.fields.slice(traceCount + kept.length).map(nameOf), missing, name)
  const gone = given.fields.filter((field) => !kept.includes(field)).map((field) => `- ${nameOf(field)}`)
  // Other programs can verify only our own signatures, which do not cover those of others.
  const others = come.fields.slice(traceCount).filter((field) => nameOf(field) !== 'dkim-signature')
  const write = (own: readonly string[]) =>
    Buffer.from(`${[...own, ...others].join('\r\n')}\r\n\r\n${come.body}`, 'latin1')
  return {
    signed: { all: write(trace), rsa: write(trace.filter((field) => !/\ba=ed25519/.test(field))) },
    changes: [...gone, ...missing.map((field) => `+ ${field}`)].join(', ') || 'nothing',
  }
}

/** Counts equal texts. */
function tally(texts: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts].map(([text, count]) => `${count} × ${text}`).sort()
}

function dkimRecords(domains: readonly Domain[]): DkimRecords {
  const records = domains.flatMap(({ records: all }) => all.filter(({ purpose }) => purpose === 'dkim'))
  return Object.fromEntries(records.map(({ name, value }) => [name, value]))
}

test('check 43: published mails arrive as they were submitted, and their signatures verify', {
  skip,
}, async (t) => {
  const sink = await startSink(t)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_SUBMISSIONS: '127.0.0.1:0',
  }
  const deployment = await deploy(t, { nodes: 1, env, roles: ['api', 'delivery'] })
  const node = deployment.nodes[0]!
  const { api, secret } = await node.createCaller({ key: { kind: 'server' }, limits: { domains: 100 } })
  const authors = mails.map(({ crlf }) => authorDomain(split(crlf.toString('latin1'))))
  const wanted = [...new Set([ownDomain, ...authors])].filter((name) => name !== null)
  const domains = await Promise.all(
    wanted.map((name) => proveDomain(api, deployment.dns, name, ['outbound']).catch(() => null)),
  )
  const proved = domains.filter((domain) => domain !== null)
  const names = new Set(proved.map(({ domain }) => domain))
  const port = node.app.listening.submissions!.port
  const written = mails.map((mail, index) => write(mail, index, names))
  const replies: string[] = []
  for (const mail of written) replies.push(await submit(t, port, secret, mail))
  const isAccepted = (_: Written, index: number) => replies[index]!.startsWith('250 ')
  const accepted = written.filter(isAccepted)
  for (const [index, mail] of written.entries())
    if (!isAccepted(mail, index)) console.log(`${mail.name}: ${replies[index]}`)
  const reasons = written.map(
    ({ name }) => refusals.find(([, names]) => names.includes(name))?.[0] ?? /^250 /,
  )
  for (const [index, { name }] of written.entries()) assert.match(replies[index]!, reasons[index]!, name)
  const copies = await until('each accepted mail to arrive', () => {
    const found = new Map(sink.copies.map(({ recipient, raw }) => [recipient, raw]))
    return found.size >= accepted.length ? found : null
  })
  const compared = accepted.map((mail) => compare(mail, copies.get(mail.recipient)!.toString('latin1')))
  console.log(
    `${accepted.length} of ${written.length} mails arrived. Changed besides the trace and signatures:`,
  )
  for (const line of tally(compared.map(({ changes }) => changes))) console.log(line)
  const records = dkimRecords(proved)
  for (const judge of findJudges()) {
    const readable = compared.map(({ signed }) => (judge.knowsEd25519 ? signed.all : signed.rsa))
    const verdicts = await judge.verify(readable, records)
    const failed = accepted.filter((_, index) => !verdicts[index]).map(({ name }) => name)
    assert.deepEqual(failed, [], judge.name)
  }
})
