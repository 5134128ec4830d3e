// Reports about TLS (RFC 8460) come to the address that domains publish, and are kept for the operator.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { checkOperatorMail } from '../../src/cli/doctor/operator-mail.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { makePlace, startNode } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'

const report = {
  'organization-name': 'Far',
  policies: [{ policy: { 'policy-type': 'sts' }, summary: { 'total-successful-session-count': 1 } }],
}
const raw = Buffer.from(
  [
    ...['From: tls@far.test', 'Subject: Report Domain: life.example', 'TLS-Report-Domain: life.example'],
    ...[
      'MIME-Version: 1.0',
      'Content-Type: application/tlsrpt+gzip',
      'Content-Transfer-Encoding: base64',
      '',
    ],
    gzipSync(JSON.stringify(report)).toString('base64'),
    '',
  ].join('\r\n'),
)

test('a report is taken at the address of the record, and at no other address of a domain', async (t) => {
  const place = await makePlace(t)
  const env = { POSTHORN_MAIL_HOST: 'mx.posthorn.test', POSTHORN_DELIVERY: 'capture' }
  const node = await startNode(place, { env, roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const { records } = await registerDomain(api, 'life.example')
  const { value } = records.find(({ purpose }) => purpose === 'tls_rpt')!
  assert.equal(value, 'v=TLSRPTv1; rua=mailto:tls-reports@mx.posthorn.test')

  const send = async (to: string) => {
    const { outcome, reply } = await sendMail(node.smtp, { from: 'tls@far.test', to, raw })
    return `${outcome} ${reply.slice(0, 9)}`
  }
  for (const to of [
    'tls-reports@mx.posthorn.test',
    'TLS-Reports+life@MX.posthorn.test',
    'tlsrpt@mx.posthorn.test',
  ])
    assert.equal(await send(to), 'accepted 250 2.0.0', to)
  for (const to of ['tls-reports@inbox.test', 'tls@mx.posthorn.test', 'tls-reports@bounce.inbox.test'])
    assert.match(await send(to), /^refused 550 5\./, to)
  const kept = await node.foundation.db.query('select purpose, address from kept_mail order by id')
  assert.deepEqual(kept, [
    { purpose: 'operator', address: 'tls-reports@mx.posthorn.test' },
    { purpose: 'operator', address: 'TLS-Reports+life@mx.posthorn.test' },
    { purpose: 'operator', address: 'tlsrpt@mx.posthorn.test' },
  ])
  // They are no letters that wait for an answer.
  assert.equal((await checkOperatorMail(node.foundation.db)).detail, 'nothing is unread')
  assert.equal(await send('postmaster@mx.posthorn.test'), 'accepted 250 2.0.0')
  assert.equal((await checkOperatorMail(node.foundation.db)).detail, '1 mail to postmaster@ is unread')
})
