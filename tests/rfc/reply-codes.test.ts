// Measures the classification of replies on two collections of real ones: Sisimai's bounces and KumoMTA's rules.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Classification, classify } from '../../src/mail/bounce/reply-code.ts'

const testdata = process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata'

interface Expectation {
  status: string
  replycode: string
  reason: string
  hardbounce: boolean
}

interface Case {
  name: string
  code: number
  enhanced: string | null
  text: string
  reason: string
}

interface Ledger {
  agreed: number
  cases: number
  differing: string[]
}

/** Returns a suite's folder. If it is absent, skips the test with a reason, or fails in CI. */
function suite(name: string, skip: (reason: string) => void): string | null {
  const folder = join(testdata, name)
  if (existsSync(folder)) return folder
  assert.ok(!process.env['CI'], `${folder} is absent`)
  skip(`${folder} is absent: set POSTHORN_TESTDATA`)
  return null
}

function measure(
  cases: readonly Case[],
  wanted: Readonly<Record<string, readonly Classification[]>>,
): Ledger {
  const ledger: Ledger = { agreed: 0, cases: 0, differing: [] }
  for (const { name, code, enhanced, text, reason } of cases) {
    const accepted = wanted[reason]
    if (!accepted) continue
    ledger.cases++
    const { classification } = classify({ code, enhanced, text }, 'rcpt')
    // We classify every temporary refusal of a recipient as `other`, whatever its text says.
    const forNow = code < 500 && accepted.includes('hard_bounce') && classification === 'other'
    if (forNow || accepted.includes(classification)) ledger.agreed++
    else
      ledger.differing.push(
        `${name}: ${reason} / ${classification}: ${code} ${enhanced} ${text.slice(0, 100)}`,
      )
  }
  return ledger
}

function report(
  title: string,
  { agreed, cases, differing }: Ledger,
  diagnostic: (line: string) => void,
): void {
  diagnostic(`${title}: ${agreed} of ${cases} agree (${Math.round((100 * agreed) / cases)} %)`)
  for (const line of differing) diagnostic(`  ${line}`)
}

const sisimaiReasons: Record<string, readonly Classification[]> = {
  userunknown: ['hard_bounce'],
  hostunknown: ['hard_bounce'],
  hasmoved: ['hard_bounce'],
  suspend: ['hard_bounce'],
  filtered: ['hard_bounce'],
  mailboxfull: ['mailbox_full'],
  rejected: ['policy'],
  requireptr: ['policy'],
  policyviolation: ['policy', 'spam'],
  norelaying: ['policy'],
  securityerror: ['policy'],
  authfailure: ['policy'],
  notcompliantrfc: ['policy', 'spam'],
  exceedlimit: ['policy'],
  mesgtoobig: ['policy'],
  blocked: ['spam', 'policy'],
  badreputation: ['spam'],
  spamdetected: ['spam'],
  virusdetected: ['spam', 'policy'],
  speeding: ['rate_limited'],
  contenterror: ['protocol', 'policy', 'other'],
  syntaxerror: ['protocol'],
  expired: ['expired', 'network'],
  networkerror: ['network', 'dns', 'expired'],
  systemerror: ['other', 'protocol', 'network'],
}

/** Returns the SMTP replies quoted in the delivery reports of a Sisimai mail, each with Sisimai's classification. */
function sisimaiCases(folder: string): Case[] {
  const expected: Record<string, Expectation[]> = JSON.parse(
    readFileSync(join(folder, 'expected.json'), 'utf8'),
  )
  return Object.entries(expected).flatMap(([name, expectations]) => {
    const quoted = quotedReplies(readFileSync(join(folder, 'eml', name), 'latin1'))
    if (quoted.length !== expectations.length) return []
    return quoted.flatMap((reply, index) =>
      reply ? [{ name, ...reply, reason: expectations[index]!.reason }] : [],
    )
  })
}

function quotedReplies(mail: string): (Omit<Case, 'name' | 'reason'> | null)[] {
  return [...mail.matchAll(/^diagnostic-code: *(\S.*(?:\r?\n[ \t]+.*)*)/gim)].map(([, value]) => {
    const line = value!.replace(/\s+/g, ' ')
    const match = /^(?:smtp; ?)?([45]\d\d)[ -](?:([45]\.\d{1,3}\.\d{1,3})\b)? ?(.*)$/i.exec(line)
    return match && { code: Number(match[1]), enhanced: match[2] ?? null, text: match[3]! }
  })
}

test('reply codes: we classify nine of ten bounces of Sisimai as it does', (context) => {
  const folder = suite('bounce-sisimai', (reason) => context.skip(reason))
  if (!folder) return
  const ledger = measure(sisimaiCases(folder), sisimaiReasons)
  report('Sisimai', ledger, (line) => context.diagnostic(line))
  assert.ok(ledger.cases >= 50, 'replies were found')
  assert.ok(ledger.agreed / ledger.cases >= 0.9)
})

const kumoReasons: Record<string, readonly Classification[]> = {
  InvalidRecipient: ['hard_bounce'],
  BadDomain: ['hard_bounce'],
  InactiveMailbox: ['hard_bounce', 'mailbox_full'],
  InvalidSender: ['policy'],
  QuotaIssues: ['mailbox_full'],
  NoAnswerFromHost: ['network'],
  BadConnection: ['network'],
  DNSFailure: ['dns'],
  RoutingErrors: ['policy', 'network', 'dns', 'hard_bounce'],
  TransientFailure: ['other', 'network', 'rate_limited'],
  MessageExpired: ['expired'],
  ProtocolErrors: ['protocol'],
  AuthenticationFailed: ['policy', 'tls'],
  PolicyRelated: ['policy', 'rate_limited'],
  SpamBlock: ['spam', 'policy'],
  SpamContent: ['spam', 'policy'],
}

/** Builds one matching reply per rule from its pattern, without the wildcards. */
function kumoCases(file: string): Case[] {
  const cases: Case[] = []
  let reason = ''
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    reason = /^(\w+) = \[/.exec(line)?.[1] ?? reason
    const pattern = /^\s+"((?:[^"\\]|\\.)*)"/.exec(line)?.[1]
    if (pattern === undefined) continue
    const example = exampleOf(pattern.replaceAll('\\\\', '\\'))
    const match = /^(\d{3})\b ?(?:([45]\.\d{1,3}\.\d{1,3})\b)? ?(.*)$/.exec(example) ?? [
      example,
      '550',
      undefined,
      example,
    ]
    const [, code, enhanced, text] = match
    cases.push({ name: pattern, code: Number(code), enhanced: enhanced ?? null, text: text!.trim(), reason })
  }
  return cases
}

function exampleOf(pattern: string): string {
  const plain = pattern
    .replace(/[\^$]/g, '')
    .replace(/\\d\{\d\}|\\d\+?/g, (run) => (run.endsWith('}') ? '50' : '0'))
  const chosen = plain.replace(/\[(\d)\d*\]/g, '$1').replace(/\((?:\d+\|)*(\d+)\)/g, '$1')
  const worded = chosen
    .replace(/\.[+*]/g, ' ')
    .replace(/\\(.)/g, '$1')
    .replace(/^\.?(?=50 )/, '5')
  // A rule for classes 4 and 5 means the class of its code.
  return worded.replace(/^(\d)(\d\d) [45]\./, '$1$2 $1.')
}

test('reply codes: we agree with four of five rules of KumoMTA', (context) => {
  const folder = suite('bounce-rules-kumomta', (reason) => context.skip(reason))
  if (!folder) return
  for (const file of ['iana.toml', 'bounces.toml']) {
    const ledger = measure(kumoCases(join(folder, file)), kumoReasons)
    report(`KumoMTA ${file}`, ledger, (line) => context.diagnostic(line))
    assert.ok(ledger.cases >= 15, 'rules were found')
    assert.ok(ledger.agreed / ledger.cases >= 0.8)
  }
})

test('check 47: no 5.2, 5.4, 5.7 and no 4xx suppresses, whatever its words', (context) => {
  const folder = suite('bounce-sisimai', (reason) => context.skip(reason))
  if (!folder) return
  const suppressed = sisimaiCases(folder).filter((one) => classify(one, 'rcpt').suppresses)
  const dead = ['userunknown', 'hostunknown', 'hasmoved', 'filtered', 'mailboxfull', 'rejected']
  for (const { name, code, enhanced, reason } of suppressed) {
    assert.ok(code >= 500 && !/^5\.[247]\./.test(enhanced ?? ''), name)
    assert.ok(dead.includes(reason), `${name} is ${reason}`)
  }
  context.diagnostic(`${suppressed.length} of Sisimai’s replies suppress their address`)
})
