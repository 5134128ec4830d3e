// Compares DMARC with others: organizational domains with the public suffix list's tests, verdicts with those of mailauth.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { toDnsName } from '../../src/mailauth/dmarc/dns-name.ts'
import { evaluateDmarc } from '../../src/mailauth/dmarc/evaluate.ts'
import { organizationalDomain } from '../../src/mailauth/dmarc/tree-walk.ts'
import { type Zone, zoneLookup } from '../support/dmarc-zone.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const file = join(testdata, 'psl/tests.txt')
const skip = existsSync(file) ? false : `${file} is absent`
assert.ok(!skip || !process.env['CI'], `${skip}`)

test('check 55: without records, the public suffix list determines the organizational domain', {
  skip,
}, (t) => {
  const lines = readFileSync(file, 'utf8').split('\n')
  const rows = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('//'))
  const cases = rows.flatMap((row) => {
    const [name, registered] = row.split(/\s+/).map((word) => (word === 'null' ? null : toDnsName(word)))
    return name ? [{ name, expected: registered ?? name }] : []
  })
  const wrong = cases.filter(({ name, expected }) => organizationalDomain(name, []) !== expected)
  t.diagnostic(
    `psl/tests.txt: ${cases.length - wrong.length} of ${cases.length} as published, ${rows.length - cases.length} are no names`,
  )
  assert.deepEqual(wrong, [])
})

interface TheirVerdict {
  status: { result: string; policy?: { dmarc: string } }
  alignment?: { spf: { result?: string }; dkim: { result?: string } }
}
type Their = (given: {
  headerFrom: string[]
  spfDomains: { domain: string }[]
  dkimDomains: { domain: string }[]
  resolver: (name: string, type: string) => Promise<unknown>
}) => Promise<TheirVerdict | false>
const { dmarc: mailauth } = createRequire(import.meta.url)('mailauth/lib/dmarc') as { dmarc: Their }

/** Wraps the same answers in the form of Node's resolver, as mailauth requires. */
function resolverOver(zone: Zone) {
  const lookup = zoneLookup(zone)
  return async (name: string, type: string): Promise<unknown> => {
    const answer = await lookup(type as 'TXT', name)
    if (answer.status === 'ok') return answer.records.map((record) => [record])
    const code = { nxdomain: 'ENOTFOUND', nodata: 'ENODATA', temporary: 'ESERVFAIL' }[answer.status]
    throw Object.assign(new Error(code), { code })
  }
}

const names = ['shop.test', 'a.shop.test', 'b.a.shop.test', 'c.shop.test', 'mailer.test', 'x.mailer.test']
const policies = ['none', 'quarantine', 'reject', 'none', 'quarantine', 'reject', 'reject', 'strange']
const option = <Value>(values: readonly Value[]) => fc.option(fc.constantFrom(...values), { freq: 3 })
const texts = fc
  .record({
    p: option(policies),
    sp: option(policies),
    np: option(policies),
    adkim: option(['r', 's', 'x']),
    aspf: option(['r', 's']),
    psd: option(['y', 'n', 'u']),
    t: option(['y', 'n']),
    rua: option(['mailto:d@shop.test', 'nobody', 'https://shop.test/a,mailto:a@b.test!5k']),
  })
  .map((tags) => {
    const written = Object.entries(tags).flatMap(([tag, value]) =>
      value === null ? [] : [`${tag}=${value}`],
    )
    return ['v=DMARC1', ...written].join('; ')
  })

test('check 55: verdict, policy and alignment equal mailauth’s', async (t) => {
  const counts: Record<string, number> = {}
  const published = fc.oneof(
    { weight: 8, arbitrary: texts },
    { weight: 1, arbitrary: fc.constantFrom('temporary', 'v=spf1 -all') },
  )
  const property = fc.asyncProperty(
    fc.constantFrom(...names),
    fc.dictionary(fc.constantFrom(...names), published),
    fc.option(texts.map((text) => `${text}; psd=y`.replace(/psd=[nu]; (.*)/, '$1'))),
    fc.subarray(names),
    fc.option(fc.constantFrom(...names)),
    fc.subarray(names),
    async (author, dmarc, suffix, existing, spf, dkim) => {
      const zone = { dmarc: suffix === null ? dmarc : { ...dmarc, test: suffix }, existing }
      const theirs = await mailauth({
        headerFrom: [`ceo@${author}`],
        spfDomains: spf === null ? [] : [{ domain: spf }],
        dkimDomains: dkim.map((domain) => ({ domain })),
        resolver: resolverOver(zone),
      })
      const passed = (domain: string) => ({ result: 'pass' as const, domain })
      const ours = await evaluateDmarc(zoneLookup(zone), {
        from: { domains: [author], fault: null },
        spf: spf === null ? null : passed(spf),
        dkim: dkim.map(passed),
      })
      assert.ok(theirs)
      // If the walk above the author's record failed, mailauth treats all names below one top-level domain as possibly
      // aligned. We require the same registered name.
      const isCutOff = names.some((name) => author.endsWith(`.${name}`) && zone.dmarc[name] === 'temporary')
      if (isCutOff && theirs.status.result === 'temperror' && ours.result === 'fail') return
      // A record that requests nothing that can be followed: RFC 9989 9.2 names this result, and mailauth reports `none`.
      assert.equal(ours.result === 'permerror' ? 'none' : ours.result, theirs.status.result)
      counts[ours.result] = (counts[ours.result] ?? 0) + 1
      if (ours.result !== 'fail' && ours.result !== 'pass') return
      if (theirs.status.policy) assert.equal(ours.policy, theirs.status.policy.dmarc)
      assert.equal(ours.alignedBy.includes('spf'), theirs.alignment?.spf.result !== undefined)
      assert.equal(ours.alignedBy.includes('dkim'), theirs.alignment?.dkim.result !== undefined)
    },
  )
  await fc.assert(property, { numRuns: 3_000 })
  t.diagnostic(`3000 of 3000 as mailauth has it: ${JSON.stringify(counts)}`)
})
