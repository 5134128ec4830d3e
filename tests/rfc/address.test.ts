// Addresses against Dominic Sayers' is_email suite: what it calls an error never parses, what SMTP allows does.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseEmail } from '../../src/mail/address.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const path = join(testdata, 'address-isemail', 'tests.xml')

interface Case {
  id: string
  address: string
  category: string
  diagnosis: string
}

function cases(): Case[] {
  if (!existsSync(path)) {
    assert.ok(!process.env['CI'], `${path} is absent`)
    return []
  }
  return [...readFileSync(path, 'utf8').matchAll(/<test id="(\d+)">(.*?)<\/test>/gs)].map(([, id, body]) => ({
    id: id!,
    address: readAddress(/<address>(.*?)<\/address>/s.exec(body!)?.[1] ?? ''),
    category: /<category>(.*?)</.exec(body!)![1]!,
    diagnosis: /<diagnosis>(.*?)</.exec(body!)![1]!,
  }))
}

/** The suite writes controls as the pictures U+2400 to U+241F, beside the references of XML. */
function readAddress(xml: string): string {
  return xml
    .replace(/&#x([0-9A-Fa-f]+);/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/[\u2400-\u241F]/g, (picture) => String.fromCharCode(picture.charCodeAt(0) - 0x2400))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

const valid = ['ISEMAIL_VALID_CATEGORY', 'ISEMAIL_DNSWARN', 'ISEMAIL_RFC5321']
/** Valid, but no address that mail is sent to: literals, and domains that would be read as IPv4 addresses. */
const refusedOnPurpose = [
  'ISEMAIL_RFC5321_ADDRESSLITERAL',
  'ISEMAIL_RFC5321_IPV6DEPRECATED',
  'ISEMAIL_RFC5321_TLDNUMERIC',
]

const all = cases()
const skip = all.length === 0 ? 'the is_email suite is absent (POSTHORN_TESTDATA)' : false

test('check 41: the is_email suite', { skip }, (t) => {
  const wrong: string[] = []
  for (const { id, address, category, diagnosis } of all) {
    const isWanted = valid.includes(category) && !refusedOnPurpose.includes(diagnosis)
    if ((parseEmail(address) !== null) !== isWanted)
      wrong.push(`${id} ${diagnosis} ${JSON.stringify(address)}`)
  }
  t.diagnostic(`${all.length - wrong.length} of ${all.length} addresses judged as the suite does`)
  assert.deepEqual(wrong, [])
})
