// Tests DANE on the wire: the client compares the presented chain with the TLSA records, and never falls back to plaintext.
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import forge from 'node-forge'
import { SMTPServer } from 'smtp-server'
import { connect } from '../../src/smtp/client/client.ts'
import type { TlsaRecord } from '../../src/smtp/client/dane.ts'
import { makeCertificate } from '../support/make-certificate.ts'
import { play } from './client-script.ts'

const host = 'mx.test'
const base = 'base.test'
const keys = forge.pki.rsa.generateKeyPair(2048)
const rootKeys = forge.pki.rsa.generateKeyPair(2048)
const signedBy = rootKeys.privateKey
const root = makeCertificate({ subject: 'root', issuer: 'root', isAuthority: true, keys: rootKeys, signedBy })
const leaf = makeCertificate({ subject: 'leaf', issuer: 'root', host: base, keys, signedBy })
const stranger = makeCertificate({
  subject: 'other',
  issuer: 'other',
  isAuthority: true,
  keys,
  signedBy: keys.privateKey,
})

const serverNames: string[] = []
let server: SMTPServer

before(async () => {
  server = new SMTPServer({
    key: forge.pki.privateKeyToPem(keys.privateKey),
    cert: leaf + stranger + root,
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    SNICallback: (name, done) => {
      serverNames.push(name)
      done(null)
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
})
after(() => new Promise<void>((resolve) => server.close(resolve)))

function recordOf(usage: number, pem: string): TlsaRecord {
  const association = createHash('sha256').update(new X509Certificate(pem).raw).digest('hex')
  return { usage, selector: 0, matchingType: 1, association }
}

async function reach(t: TestContext, port: number, records: TlsaRecord[]) {
  const requirement = { kind: 'dane', records, names: [base, host] } as const
  const opened = await connect({
    host,
    address: '127.0.0.1',
    port,
    ehloName: 'me.test',
    tls: 'opportunistic',
    requirement,
  })
  if ('connection' in opened) t.after(() => opened.connection.destroy())
  return opened
}

const portOfServer = () => (server.server.address() as AddressInfo).port

for (const [what, records, fault] of [
  ['with the server’s certificate', [recordOf(3, leaf)], null],
  ['with the root that the server presents', [recordOf(2, root)], null],
  ['none of which is usable', [], null],
  [
    'with another certificate',
    [recordOf(3, root), recordOf(2, stranger)],
    /^DANE, by the TLSA records of base\.test: no chain leads/,
  ],
] as const)
  test(`check 35: records ${what} ${fault ? 'refuse' : 'accept'} the server`, async (t) => {
    serverNames.length = 0
    const opened = await reach(t, portOfServer(), [...records])
    assert.deepEqual(serverNames, [base])
    if (fault === null) {
      assert.ok('connection' in opened, JSON.stringify(opened))
      assert.equal(opened.connection.remote.policy, 'dane')
      return
    }
    assert.ok('fault' in opened)
    assert.equal(opened.fault.kind, 'tls')
    assert.match(opened.fault.message, fault)
  })

for (const [what, script] of [
  ['not offered', 'S: 220 mx.test\nC: EHLO me.test\nS: 250 mx.test\ngone'],
  [
    'refused',
    'S: 220 mx.test\nC: EHLO me.test\nS: 250-mx.test\nS: 250 STARTTLS\nC: STARTTLS\nS: 454 no\ngone',
  ],
] as const)
  test(`check 35: with TLSA records, usable or not, STARTTLS that is ${what} is a fault`, async (t) => {
    for (const records of [[recordOf(3, leaf)], []]) {
      const { port } = await play(t, script)
      const opened = await reach(t, port, records)
      assert.ok('fault' in opened)
      assert.deepEqual(opened.fault, {
        kind: 'tls',
        message: 'DANE, by the TLSA records of base.test: the server does not start TLS',
      })
    }
  })
