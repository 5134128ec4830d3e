// Runs the published SPF suite of RFC 7208 and checks every result and explanation.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import type { DnsType } from '../../src/dns/resolver.ts'
import { checkSpf } from '../../src/mailauth/spf/check-spf.ts'
import { lookupIn, recordsOf, type Zone, type ZoneName } from '../support/zone.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const folder = join(testdata, 'spf-rfc7208')
const skip = existsSync(folder) ? false : `${folder} is absent`
assert.ok(!skip || !process.env['CI'], `${skip}`)

interface Case {
  helo: string
  host: string
  mailfrom: string
  /** The one result, or the results that the RFC leaves open. */
  result: string | string[]
  /** DEFAULT is the receiver's explanation, so the sender gives none. */
  explanation?: string
}

type Entry = 'TIMEOUT' | Record<string, string | string[] | [number, string]>

interface Scenario {
  description: string
  tests: Record<string, Case>
  zonedata: Record<string, Entry[]>
}

function readScenarios(): Scenario[] {
  const text = readFileSync(join(folder, 'rfc7208-tests.yml'), 'utf8')
  return parseAllDocuments(text).map((document) => document.toJS() as Scenario)
}

/** The suite writes policies as type SPF. A driver must serve them as TXT, unless a name has its own TXT records. */
function toZoneName(entries: readonly Entry[]): ZoneName {
  const given: { [Type in DnsType | 'SPF']?: string[] } = {}
  for (const entry of entries) {
    if (entry === 'TIMEOUT') continue
    for (const [type, value] of Object.entries(entry)) {
      const text = type === 'MX' ? String(value[1]) : [value].flat().join('')
      ;(given[type as DnsType] ??= []).push(text)
    }
  }
  const { SPF, TXT = SPF, ...others } = given
  const texts = TXT?.filter((text) => text !== 'NONE')
  return {
    records: recordsOf({ ...others, ...(texts && { TXT: texts }) }),
    silent: entries.includes('TIMEOUT'),
  }
}

function toZone(zonedata: Scenario['zonedata']): Zone {
  return new Map(Object.entries(zonedata).map(([name, entries]) => [name.toLowerCase(), toZoneName(entries)]))
}

const at = new Date('2026-11-21T09:05:07Z')

/** Returns the difference from the suite, or null. */
async function findDifference(one: Case, zone: Zone): Promise<string | null> {
  const input = { ip: one.host, helo: one.helo, from: one.mailfrom, hostname: 'mx.example.net', at }
  const { result, explanation, reason } = await checkSpf(lookupIn(zone), input)
  const wanted = [one.result].flat()
  if (!wanted.includes(result)) return `${result} (${reason}), not ${wanted.join(' or ')}`
  const isAsWanted =
    one.explanation === undefined || (one.explanation === 'DEFAULT' ? null : one.explanation) === explanation
  return isAsWanted ? null : `explained as ${explanation}, not ${one.explanation}`
}

test('check 53: SPF passes the published suite of RFC 7208', { skip }, async (t) => {
  let asWanted = 0
  let explained = 0
  const open: string[] = []
  const differing: string[] = []
  for (const { description, tests, zonedata } of readScenarios()) {
    const zone = toZone(zonedata)
    for (const [name, one] of Object.entries(tests)) {
      const difference = await findDifference(one, zone)
      if (difference === null) asWanted++
      else differing.push(`${description}: ${name}: ${difference}`)
      if (one.explanation !== undefined) explained++
      if (Array.isArray(one.result)) open.push(`${name} (${one.result.join(' or ')})`)
    }
  }
  const total = asWanted + differing.length
  t.diagnostic(`spf-rfc7208: ${asWanted} of ${total} as published, explanations of ${explained} compared`)
  t.diagnostic(`the suite leaves open: ${open.join(', ')}`)
  assert.deepEqual(differing, [])
  assert.equal(total, 203)
})
