// Mail in the name of a domain that wants forgeries refused: what forgers write so that it is taken all the same.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

const refused = '550 5.7.2'

async function setStage(t: TestContext) {
  const dns = await DnsServer.start({ '_dmarc.bank.example': { TXT: ['v=DMARC1; p=reject'] } })
  t.after(() => dns.close())
  const place = await makePlace(t)
  const node = await startNode(place, {
    env: {
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_DNS: dns.address,
      // As many connections as it likes.
      POSTHORN_SMTP_TRUSTED: '127.0.0.0/8',
    },
  })
  const { address } = await (await node.createCaller()).api.createInbox('ben')
  const sender = new Sender(node.smtp)
  const send = async (header: string, from = 'a@evil.example') =>
    (await sender.send({ to: [address], from, raw: `${header}\r\n\r\nPay me.\r\n` })).at(-1)!
  return { dns, node, send }
}

test('check 55: who is shown as the author is whose domain is asked, however the field is written', async (t) => {
  const { send } = await setStage(t)
  const headers = [
    'From: ceo@bank.example',
    'From: a@evil.example\r\nFrom: ceo@bank.example',
    'From: <ceo @ bank . example>',
    'From: <ceo@bank(x).example>',
    'From: ceo@bank.example.',
    'From: <a b@d1.example>, <a b@d2.example>, <a b@d3.example>, CEO <ceo@bank.example>',
  ]
  for (const header of headers) assert.equal(await send(header), refused, header)
  assert.equal(await send('From: a@evil.example'), '250 2.0.0')
})

test('check 55: a header that is too large to be judged is refused, and leaves no file', async (t) => {
  const { send, node } = await setStage(t)
  const padding = `X: ${'x'.repeat(900)}\r\n`.repeat(300)
  assert.equal(await send(`${padding}From: ceo@bank.example`), '552 5.3.4')
  const { blobFolder } = node.foundation.settings
  const files = readdirSync(blobFolder, { recursive: true, withFileTypes: true })
  const blobs = files.filter((file) => file.isFile() && !/^(database-id|node-\d+)$/.test(file.name))
  assert.deepEqual(blobs, [])
})

test('check 52: who has used up the questions of his network is put off, and gets no forgery in', async (t) => {
  const { send, dns } = await setStage(t)
  const names = Array.from({ length: 1_200 }, (_, index) => `s${index}._domainkey.evil.example`)
  for (const name of names) {
    dns.set(name, {})
    dns.fail(name, 'silent')
  }
  const signature = (index: number) =>
    `DKIM-Signature: v=1; a=rsa-sha256; d=evil.example; s=s${index}; h=from; bh=eA==; b=eA==\r\n`
  const signed = (first: number) => Array.from({ length: 8 }, (_, index) => signature(first + index)).join('')
  const flood = Array.from({ length: 150 }, (_, index) => send(`${signed(8 * index)}From: a@evil.example`))
  // A third of 1,024.
  const asked = () =>
    new Set(dns.asked.map(({ name }) => name).filter((name) => name.includes('_domainkey'))).size
  await until('the questions to be used up', () => asked() >= 335)
  const forged = await Promise.all([
    send('From: ceo@bank.example'),
    send('From: ceo@bank.example\r\nFrom: a@evil.example'),
  ])
  assert.deepEqual(forged, ['451 4.7.1', '451 4.7.1'])
  await Promise.all(flood)
  assert.equal(await until('the policy', async () => answered(await send('From: ceo@bank.example'))), refused)
})

const answered = (reply: string) => (reply.startsWith('451') ? null : reply)
