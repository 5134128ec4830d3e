// Aggregate reports: one complete report, and documents that stay well-formed for any content.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { writeReportMail } from './report-mail.ts'
import { type AggregateReport, type ReportedMail, writeReportXml } from './report-xml.ts'

const mail: ReportedMail = {
  sourceIp: '192.0.2.7',
  headerFrom: 'news.shop.test',
  envelopeFrom: 'bounce.shop.test',
  disposition: 'pass',
  alignedBy: ['dkim'],
  override: null,
  dkim: [{ domain: 'shop.test', selector: 'k1', result: 'pass' }],
  spf: { domain: 'bounce.shop.test', result: 'softfail' },
}
const failed: ReportedMail = {
  sourceIp: '2001:db8::7',
  headerFrom: 'shop.test',
  envelopeFrom: '',
  disposition: 'none',
  alignedBy: [],
  override: 'trusted_forwarder',
  dkim: [],
  spf: null,
}
const report: AggregateReport = {
  reporter: { host: 'mx.here.test', email: 'reports@here.test' },
  policyDomain: 'shop.test',
  policy: { p: 'reject', sp: null, np: null, adkim: 'relaxed', aspf: 'strict', isTesting: false },
  dayStart: new Date('2026-11-22T00:00:00Z'),
  rows: [
    { mail, count: 12 },
    { mail: failed, count: 1 },
  ],
  omitted: 3,
}

const written = `<?xml version="1.0" encoding="UTF-8"?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
<version>1.0</version>
<report_metadata>
<org_name>mx.here.test</org_name>
<email>reports@here.test</email>
<report_id>2026-11-22.ID@mx.here.test</report_id>
<date_range>
<begin>1795305600</begin>
<end>1795391999</end>
</date_range>
<error>3 messages are in no record: there were too many kinds</error>
<generator>Posthorn</generator>
</report_metadata>
<policy_published>
<domain>shop.test</domain>
<discovery_method>treewalk</discovery_method>
<p>reject</p>
<sp>reject</sp>
<np>reject</np>
<adkim>r</adkim>
<aspf>s</aspf>
<testing>n</testing>
</policy_published>
<record>
<row>
<source_ip>192.0.2.7</source_ip>
<count>12</count>
<policy_evaluated>
<disposition>pass</disposition>
<dkim>pass</dkim>
<spf>fail</spf>
</policy_evaluated>
</row>
<identifiers>
<header_from>news.shop.test</header_from>
<envelope_from>bounce.shop.test</envelope_from>
</identifiers>
<auth_results>
<dkim>
<domain>shop.test</domain>
<selector>k1</selector>
<result>pass</result>
</dkim>
<spf>
<domain>bounce.shop.test</domain>
<scope>mfrom</scope>
<result>softfail</result>
</spf>
</auth_results>
</record>
<record>
<row>
<source_ip>2001:db8::7</source_ip>
<count>1</count>
<policy_evaluated>
<disposition>none</disposition>
<dkim>fail</dkim>
<spf>fail</spf>
<reason>
<type>trusted_forwarder</type>
</reason>
</policy_evaluated>
</row>
<identifiers>
<header_from>shop.test</header_from>
<envelope_from></envelope_from>
</identifiers>
<auth_results>
</auth_results>
</record>
</feedback>
`

test('a report is a document of RFC 9990', () => {
  assert.equal(writeReportXml(report).replace(/22\.[0-9a-f]{12}@/, '22.ID@'), written)
})

test('a report’s mail has the subject and file name of RFC 9990, and the same bytes each time', async () => {
  const first = await writeReportMail(report)
  const id = /^Report Domain: shop\.test Submitter: mx\.here\.test Report-ID: <([^>]+)>$/.exec(first.subject)
  assert.match(id?.[1] ?? '', /^2026-11-22\.[0-9a-f]{12}@mx\.here\.test$/)
  assert.equal(first.filename, 'mx.here.test!shop.test!1795305600!1795391999.xml.gz')
  assert.equal(first.contentType, 'application/gzip')
  const xml = gunzipSync(first.content).toString()
  assert.equal(xml, writeReportXml(report))
  assert.ok(xml.includes(`<report_id>${id?.[1]}</report_id>`))
  assert.match(first.text, /shop\.test\non 2026-11-22 \(UTC\): 13 messages\./)
  assert.deepEqual(await writeReportMail(report), first)
})

const script = `
import json, sys
import xml.etree.ElementTree as tree
for document in json.load(sys.stdin):
    root = tree.fromstring(document.encode())
    print(json.dumps([node.text or '' for node in root.iter('{urn:ietf:params:xml:ns:dmarc-2.0}header_from')]))
`
const hasPython = spawnSync('python3', ['--version']).status === 0
assert.ok(hasPython || !process.env['CI'], 'python3 is missing')

test('a report with any strings is well-formed and reads back as given', {
  skip: hasPython ? false : 'python3 is missing',
}, () => {
  const hostile = fc.array(
    fc.constantFrom('<', '>', '&', '"', "'", ']]>', '\0', '\ud800', '\ufffe', 'é', '\n', 'a'),
  )
  const strings = fc.oneof(
    hostile.map((parts) => parts.join('')),
    fc.string({ unit: 'binary', maxLength: 600 }),
  )
  const samples = fc.sample(fc.array(strings, { minLength: 1, maxLength: 3 }), 60)
  const documents = samples.map((names) =>
    writeReportXml({
      ...report,
      rows: names.map((name) => ({ mail: { ...mail, headerFrom: name }, count: 1 })),
    }),
  )
  const { stdout, stderr } = spawnSync('python3', ['-c', script], { input: JSON.stringify(documents) })
  const read = stdout.toString().trim().split('\n')
  assert.equal(read.length, samples.length, stderr.toString())
  for (const [at, line] of read.entries()) {
    const names: string[] = JSON.parse(line)
    assert.equal(names.length, samples[at]!.length)
    // An XML parser normalizes every line end.
    const plain = (text: string) => text.replace(/\r\n?/g, '\n').replace(/[^\n -~]/g, '')
    for (const [index, name] of names.entries()) {
      const given = samples[at]![index]!.slice(0, 500)
      assert.equal(plain(name), plain(given))
    }
  }
})
