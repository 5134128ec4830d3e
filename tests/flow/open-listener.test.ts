// The mail server in the open, as the service runs it: block lists by setting, binary mail from the wire to the download.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'
import { Wire } from '../support/wire.ts'

const place = await makePlace({ after })
const dns = await DnsServer.start({
  '4.3.2.1.refusing.test': { A: ['127.0.0.2'] },
  '5.3.2.1.telling.test': { A: ['127.0.0.9'] },
  '6.3.2.1.refusing.test': { A: ['127.255.255.254'] },
})
place.after(() => dns.close())
const scanned: Buffer[] = []
const clamd = await fakeClamd(place, (socket, received) => {
  const whole = streamed(received)
  if (!whole) return
  scanned.push(whole)
  socket.end('stream: OK\0')
})
const node = await startNode(place, {
  env: {
    POSTHORN_DELIVERY: 'capture',
    POSTHORN_DNS: dns.address,
    POSTHORN_DNSBL: 'refusing.test, tell:telling.test',
    POSTHORN_CLAMD: `${clamd.host}:${clamd.port}`,
  },
})

interface Sent {
  /** The address that a load balancer in front would name. */
  peer?: string
  parameters?: string
  to: string[]
  raw: Buffer
}

/** Sends by BDAT. Returns the replies to each RCPT and to the message. */
async function deliver({ peer = '9.9.9.9', parameters = '', to, raw }: Sent): Promise<string[]> {
  const socket = connect({ ...node.smtp, noDelay: true })
  const wire = new Wire(socket)
  const ask = async (words: string | Buffer) => {
    await wire.write(words)
    return (await wire.reply()) ?? 'lost'
  }
  try {
    await ask(`PROXY TCP4 ${peer} 192.0.2.1 4000 25\r\n`)
    await ask('EHLO sender.test\r\n')
    await ask(`MAIL FROM:<someone@far.test>${parameters}\r\n`)
    const replies: string[] = []
    for (const address of to) replies.push(await ask(`RCPT TO:<${address}>\r\n`))
    return [...replies, await ask(Buffer.concat([Buffer.from(`BDAT ${raw.length} LAST\r\n`), raw]))]
  } finally {
    socket.destroy()
  }
}

const plain = Buffer.from('From: someone@far.test\r\nSubject: Test\r\n\r\nHello.\r\n')

test('check 52: block lists refuse or mark mail, and silent lists are skipped', async (t) => {
  const { api } = await node.createCaller()
  const { address } = await api.createInbox()
  const send = (peer: string, to = address) => deliver({ peer, to: [to], raw: plain })
  const refused = '550 5.7.1 Service unavailable, client host [1.2.3.4] blocked using refusing.test'
  assert.deepEqual((await send('1.2.3.4'))[0], refused)
  assert.match(node.log(), /"peer":"1\.2\.3\.4","from":"[^"]+","list":"refusing\.test"/)
  assert.match((await send('1.2.3.4', 'postmaster@inbox.test'))[1]!, /^250/)
  assert.match((await send('1.2.3.5'))[1]!, /^250/)
  assert.match((await send('1.2.3.6'))[1]!, /^250/)
  assert.match(node.log(), /"list":"refusing\.test","reason":"it answered 127\.255\.255\.254/)
  for (const zone of ['refusing', 'telling']) dns.fail(`7.3.2.1.${zone}.test`, 'silent')
  const startMs = performance.now()
  assert.match((await send('1.2.3.7'))[1]!, /^250/)
  const tookMs = performance.now() - startMs
  t.diagnostic(`a mail with silent lists took ${tookMs.toFixed(0)} ms`)
  assert.ok(tookMs < 3_500, `${tookMs} ms`)
})

/** Every byte, and sequences that break a line reader. */
const bytes = Buffer.concat([
  Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  Buffer.from('\r\r\n.\r\n\n.\n\r\n..\r\n\0\n--other\n\r'),
])

function binaryMail(content: Buffer): Buffer {
  const head = [
    'From: someone@far.test',
    'Subject: Binary',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=limit',
    'Content-Transfer-Encoding: binary',
    '',
    '--limit',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: binary',
    '',
    'Hello\nb\u00fcn\0ary\r\n--limit',
    'Content-Type: application/octet-stream; name=all.bin',
    'Content-Disposition: attachment; filename=all.bin',
    'Content-Transfer-Encoding: binary',
    '',
    '',
  ].join('\r\n')
  return Buffer.concat([Buffer.from(head), content, Buffer.from('\r\n--limit--\r\n')])
}

for (const [size, content] of [
  ['small', bytes],
  ['in a blob', Buffer.concat([bytes, randomBytes(600_000), bytes])],
] as const)
  test(`check 22: binary mail, ${size}, is read, scanned, returned and exported byte for byte`, async () => {
    const { api } = await node.createCaller()
    const inbox = await api.createInbox()
    const raw = binaryMail(content)
    const lines = await deliver({ to: [inbox.address], raw })
    assert.match(lines[1]!, /^550 5\.6\.0/)
    assert.match((await deliver({ to: [inbox.address], raw, parameters: ' BODY=BINARYMIME' }))[1]!, /^250/)
    const message = await until('it to be filed and scanned', async () => {
      const [found] = await api.exported(inbox.id)
      if (!found) return null
      const shown = await api.want<{
        text: string
        attachments: { id: string; scanState: string; size: number }[]
      }>(`/v1/messages/${found.id}`)
      return shown.attachments[0]?.scanState === 'clean' ? { ...shown, id: found.id } : null
    })
    assert.equal(message.text, 'Hello\nb\u00fcn\ufffdary')
    assert.equal(message.attachments.length, 1)
    const source = await api.bytes(`/v1/messages/${message.id}/source`)
    assert.ok(source.subarray(-raw.length).equals(raw))
    const [attachment] = message.attachments
    const downloaded = await api.bytes(`/v1/messages/${message.id}/attachments/${attachment!.id}`)
    assert.ok(downloaded.equals(content))
    assert.ok(scanned.some((one) => one.equals(content)))
  })
