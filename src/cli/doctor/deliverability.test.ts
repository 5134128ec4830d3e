// The doctor's verdicts on the chain of outgoing mail: a sound one, and the same with one broken link at a time.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { after, type TestContext, test } from 'node:test'
import { SMTPServer } from 'smtp-server'
import { trustAuthority } from '../../../tests/support/certificates.ts'
import { DnsServer, type ZoneRecords } from '../../../tests/support/dns-server.ts'
import { Clock } from '../../base/clock.ts'
import { readSettings } from '../../config/settings.ts'
import { Resolver } from '../../dns/resolver.ts'
import { ownOrganizationId } from '../../flow/own-organization.ts'
import type { SourcePool } from '../../flow/source-pools.ts'
import { type DkimKey, generateDkimKey } from '../../mailauth/dkim-sign.ts'
import type { Chain } from './chain.ts'
import { checkChain } from './deliverability.ts'
import { expectedRecords } from './dns.ts'

const domains = ['ours.test', 'shop.test']
const { privatePem, publicRecord } = await generateDkimKey('ed25519-sha256')
const authority = trustAuthority({ after })
const keyOf = (domain: string): DkimKey => ({
  domain,
  selector: 'ph1',
  algorithm: 'ed25519-sha256',
  privateKey: createPrivateKey(privatePem),
})
const spf = 'v=spf1 a:mx.ours.test -all'
const sound: Record<string, ZoneRecords> = {
  'mx.ours.test': { A: ['198.51.44.1'], TXT: ['v=spf1 a -all'] },
  '1.44.51.198.in-addr.arpa': { PTR: ['mx.ours.test'] },
  'ours.test': {
    MX: [
      [10, 'in.ours.test'],
      [20, 'mx.ours.test'],
    ],
    TXT: [spf],
  },
  'in.ours.test': { A: ['127.0.0.61'] },
  'bounce.shop.test': { TXT: [spf] },
  '_mta-sts.ours.test': { TXT: ['v=STSv1; id=1;'] },
  '_smtp._tls.ours.test': { TXT: ['v=TLSRPTv1; rua=mailto:tls-reports@mx.ours.test'] },
}
for (const domain of domains) {
  sound[`ph1._domainkey.${domain}`] = { TXT: [publicRecord] }
  sound[`_dmarc.${domain}`] = { TXT: ['v=DMARC1; p=reject'] }
}

/** Runs the checks over the sound zone with these changes. Returns the checks that are not `ok` or skipped. */
async function examine(
  t: TestContext,
  changes: Record<string, ZoneRecords> = {},
  pools: readonly SourcePool[] = [],
) {
  const dns = await DnsServer.start({ ...sound, ...changes })
  const server = new SMTPServer({ ...authority.issue('in.ours.test'), authOptional: true, logger: false })
  server.on('error', () => {})
  server.listen(0, '127.0.0.61')
  await once(server.server, 'listening')
  t.after(async () => {
    await dns.close()
    await new Promise<void>((resolve) => server.close(resolve))
  })
  const settings = readSettings({
    POSTHORN_MAIL_HOST: 'mx.ours.test',
    POSTHORN_MANAGED_DOMAIN: 'ours.test',
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_MX_PORT: String((server.server.address() as { port: number }).port),
    POSTHORN_DNSBL: 'bl.test',
    POSTHORN_PUBLIC_URL: 'https://mail.ours.test',
  })
  const name = 'ph1._domainkey.ours.test'
  const key = {
    selector: 'ph1',
    algorithm: 'ed25519-sha256',
    state: 'active',
    name,
    value: publicRecord,
  } as const
  const chain: Chain = {
    settings,
    resolver: new Resolver({ servers: [dns.address], timeoutMs: 2_000, tries: 1 }),
    clock: new Clock(),
    identities: {
      of: async (_, domain) => ({
        keys: [keyOf(domain)],
        returnPathHost: domain === 'ours.test' ? domain : `bounce.${domain}`,
        hasOneClick: false,
      }),
    },
    pools,
    customers: [{ organizationId: ownOrganizationId, name: 'shop.test' }],
    managed: expectedRecords(settings, [{ ...key, zoneLine: `${name}. TXT`, publishedUntil: null }]),
    fetcher: {
      fetch: async () => ({ policy: { mode: 'enforce', mx: ['*.ours.test'], maxAgeSeconds: 86_400 } }),
    },
  }
  const checks = await checkChain(chain)
  return {
    checks,
    faults: checks.filter(({ status }) => status !== 'ok' && status !== 'skipped'),
  }
}

test('a sound chain passes every check, with a trial mail of each domain', async (t) => {
  const { checks, faults } = await examine(t)
  assert.deepEqual(faults, [])
  const details = checks.map(({ name, detail }) => `${name}: ${detail}`)
  for (const domain of domains)
    assert.ok(
      details.includes(
        `trial mail: ${domain} from 198.51.44.1: SPF pass; DKIM ph1 pass; DMARC pass, policy reject`,
      ),
      details.join('\n'),
    )
  for (const words of [
    /^own mail server: .*TLSv1\.3, its certificate is valid$/m,
    /^listing: bl\.test does not list/m,
  ])
    assert.match(details.join('\n'), words)
})

const broken: [what: string, changes: Record<string, ZoneRecords>, ...found: [string, string, RegExp][]][] = [
  ['an address without a name', { '1.44.51.198.in-addr.arpa': {} }, ['reverse DNS', 'failed', /has no name/]],
  [
    'a listed address',
    { '1.44.51.198.bl.test': { A: ['127.0.0.2'] } },
    ['listing', 'failed', /^bl\.test lists 198\.51\.44\.1/],
  ],
  [
    'a customer’s domain whose key is gone and whose SPF names another host',
    { 'ph1._domainkey.shop.test': {}, 'bounce.shop.test': { TXT: ['v=spf1 -all'] } },
    ['trial mail', 'failed', /^shop\.test from 198\.51\.44\.1: SPF fail .*; DKIM ph1 .*; DMARC fail/],
  ],
  [
    'a managed domain without SPF',
    { 'ours.test': { MX: sound['ours.test']!.MX! } },
    ['DNS: SPF', 'failed', /no SPF record/],
    ['trial mail', 'warning', /^ours\.test .*SPF none .*DKIM ph1 pass; DMARC pass/],
  ],
  [
    'an EHLO name without SPF',
    { 'mx.ours.test': { A: ['198.51.44.1'] } },
    ['EHLO name', 'warning', /SPF none/],
  ],
  [
    'no policies for TLS',
    { '_mta-sts.ours.test': {}, '_smtp._tls.ours.test': {} },
    ['MTA-STS', 'warning', /has no policy/],
    ['TLS reports', 'warning', /where to report failures/],
  ],
  [
    'a certificate for another name',
    {
      'ours.test': {
        MX: [
          [10, 'wrong.ours.test'],
          [20, 'mx.ours.test'],
        ],
        TXT: [spf],
      },
      'wrong.ours.test': { A: ['127.0.0.61'] },
    },
    ['own mail server', 'warning', /its certificate is not for wrong\.ours\.test$/],
  ],
]

for (const [what, changes, ...expected] of broken)
  test(`${what} is found, and its mend is named`, async (t) => {
    const { faults } = await examine(t, changes)
    assert.deepEqual(
      faults.map(({ name, status }) => [name, status]),
      expected.map(([name, status]) => [name, status]),
    )
    for (const [index, [, , words]] of expected.entries()) {
      assert.match(faults[index]!.detail, words)
      assert.ok(faults[index]!.mend)
    }
  })

test('nothing is checked if no mail leaves', async () => {
  const settings = readSettings({ POSTHORN_DELIVERY: 'capture' })
  const checks = await checkChain({ settings } as Chain)
  assert.deepEqual(
    checks.map(({ name, status }) => [name, status]),
    [['delivery', 'skipped']],
  )
})

/** A pool whose source is behind a NAT, so that this machine has it and receivers see the address of its name. */
const pool: SourcePool = {
  name: 'bulk',
  organizations: [],
  purposes: [],
  sources: [{ address: '127.0.0.62', ehlo: 'bulk.ours.test', warmUp: null }],
}
const soundSource: Record<string, ZoneRecords> = {
  'mx.ours.test': { A: ['198.51.44.1', '198.51.44.2'], TXT: ['v=spf1 a -all'] },
  'bulk.ours.test': { A: ['198.51.44.2'], TXT: ['v=spf1 a -all'] },
  '2.44.51.198.in-addr.arpa': { PTR: ['bulk.ours.test'] },
}

test('each source of a pool is checked: address, names, SPF, block lists, and a trial mail', async (t) => {
  const { checks } = await examine(t, soundSource, [pool])
  const found = checks.map(({ status, name, detail }) => `${status} ${name}: ${detail}`)
  for (const line of [
    'ok pool source: pool bulk: mail leaves from 127.0.0.62',
    'ok reverse DNS: 198.51.44.2 is bulk.ours.test, and bulk.ours.test has that address',
    'ok EHLO name: bulk.ours.test from 198.51.44.2: SPF pass',
    'ok listing: bl.test does not list 198.51.44.2',
    'ok trial mail: shop.test from 198.51.44.2: SPF pass; DKIM ph1 pass; DMARC pass, policy reject',
  ])
    assert.ok(found.includes(line), `${line}\n${found.join('\n')}`)
})

test('a source with wrong names, without SPF, on a block list, or not on this machine is named', async (t) => {
  const [source] = pool.sources
  const sources = [source!, { address: '198.51.44.9', ehlo: 'absent.ours.test', warmUp: null }]
  const changes = {
    ...soundSource,
    '2.44.51.198.in-addr.arpa': {},
    'bulk.ours.test': { A: ['198.51.44.2'], TXT: ['v=spf1 -all'] },
    '2.44.51.198.bl.test': { A: ['127.0.0.2'] },
  }
  const { faults } = await examine(t, changes, [{ ...pool, sources }])
  const found = faults.map(({ status, name, detail }) => `${status} ${name}: ${detail}`).join('\n')
  for (const line of [
    /^failed reverse DNS: 198\.51\.44\.2 has no name/m,
    /^failed EHLO name: bulk\.ours\.test from 198\.51\.44\.2: SPF fail/m,
    /^failed listing: bl\.test lists 198\.51\.44\.2/m,
    /^warning pool source: pool bulk: 198\.51\.44\.9 is not an address of this machine/m,
    /^failed EHLO name: 198\.51\.44\.9 greets as absent\.ours\.test, which has not that address/m,
    /^failed outbound address: mail leaves from 198\.51\.44\.9, which is not an address of mx\.ours\.test/m,
  ])
    assert.match(found, line)
})
