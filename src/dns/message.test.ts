// Replies of DNS against another program that writes and reads them, and arbitrary bytes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, AUTHENTIC_DATA, decode, encode, RECURSION_AVAILABLE } from 'dns-packet'
import fc from 'fast-check'
import { inCpuTime } from '../../tests/support/cpu-time.ts'
import { readReply, typeNumbers, writeQuery } from './message.ts'
import { readAnswer } from './read-answer.ts'
import { readHost, readIpv4, readIpv6, readMx, readText } from './read-record.ts'
import { writeName } from './wire-name.ts'

const name = 'mail.example'
const question = { type: typeNumbers.TXT, name: writeName(name)! }
const query = writeQuery(question, 'with')

function replyWith(
  answers: Answer[],
  { id = query.id, asked = name, type = 'TXT', flags = 0, rcode = 0 } = {},
) {
  return encode({
    id,
    type: 'response',
    flags: RECURSION_AVAILABLE | flags | rcode,
    answers,
    questions: [{ type, name: asked }],
    authorities: [],
    additionals: [],
  })
}

const text = (value: string, owner = name): Answer => ({ type: 'TXT', name: owner, ttl: 60, data: [value] })

test('another program reads our question as it was meant', () => {
  const { id, questions, additionals, flags } = decode(query.bytes)
  assert.deepEqual([id, questions], [query.id, [{ name, type: 'TXT', class: 'IN' }]])
  assert.equal(flags, 0x120)
  assert.equal(
    additionals?.length === 1 && 'udpPayloadSize' in additionals[0]! && additionals[0].udpPayloadSize,
    1232,
  )
  assert.equal(decode(writeQuery(question, 'without').bytes).additionals?.length, 0)
})

test('a reply that another program wrote is read', () => {
  const reply = readReply(
    replyWith([text('one'), text('two')], { flags: AUTHENTIC_DATA, asked: 'MAIL.example' }),
    query,
  )
  assert.ok(reply?.isAuthenticated && reply.isRecursive && !reply.isAuthoritative && !reply.isTruncated)
  const found = readAnswer(reply, typeNumbers.TXT, name)
  assert.ok(found.status === 'ok' && found.isAuthenticated && found.ttlSeconds === 60)
  assert.deepEqual(
    found.records.map((record) => readText(reply.bytes, record)),
    ['one', 'two'],
  )
})

for (const [what, reply] of [
  ['under another id', replyWith([text('one')], { id: query.id ^ 1 })],
  ['to another name', replyWith([text('one')], { asked: 'mail.exampl' })],
  ['to another name of the same length', replyWith([text('one')], { asked: 'mail.exambel' })],
  ['to another type', replyWith([text('one')], { type: 'MX' })],
  [
    'to no question',
    encode({ id: query.id, type: 'response', flags: 0, questions: [], answers: [text('one')] }),
  ],
  ['that is a question', query.bytes],
  ['that is cut off', replyWith([text('one')]).subarray(0, -1)],
  ['of 65,535 records that are not there', spoiled((bytes) => bytes.writeUInt16BE(0xffff, 10))],
  ['of an opcode that was not asked', spoiled((bytes) => bytes.writeUInt16BE(0x9080, 2))],
] as const)
  test(`check 52: a reply ${what} is ignored`, () => assert.equal(readReply(reply, query), null))

function spoiled(spoil: (bytes: Buffer) => void): Buffer {
  const bytes = replyWith([text('one')])
  spoil(bytes)
  return bytes
}

test('check 52: records of other names are ignored', () => {
  const alias: Answer = { type: 'CNAME', name: 'other.example', ttl: 60, data: name }
  const reply = readReply(
    replyWith([text('lie', 'other.example'), alias, { ...text('chaos'), class: 'CH' }]),
    query,
  )!
  assert.deepEqual(readAnswer(reply, typeNumbers.TXT, name), { status: 'nodata' })
})

test('check 52: an EDNS error code is not taken for success', () => {
  const bytes = encode({
    id: query.id,
    type: 'response',
    flags: RECURSION_AVAILABLE,
    questions: [{ type: 'TXT', name }],
    answers: [],
    additionals: [{ type: 'OPT', name: '.', udpPayloadSize: 512, extendedRcode: 1, flags: 0, options: [] }],
  })
  assert.deepEqual(readAnswer(readReply(bytes, query)!, typeNumbers.TXT, name), {
    status: 'temporary',
    reason: 'DNS answered code 16',
  })
})

test('check 52: a TTL with its first bit set counts as 0', () => {
  const reply = readReply(replyWith([{ ...text('one'), ttl: 0x8000_0000 }]), query)!
  const found = readAnswer(reply, typeNumbers.TXT, name)
  assert.equal(found.status === 'ok' && found.ttlSeconds, 0)
})

for (const [what, read, bytes, value] of [
  ['an IPv4 address', readIpv4, 'c0000201', '192.0.2.1'],
  ['an IPv4 address of five bytes', readIpv4, 'c000020101', null],
  ['an IPv6 address', readIpv6, '20010db8000000000000000000000001', '2001:db8::1'],
  ['an IPv6 address of four bytes', readIpv6, 'c0000201', null],
  ['a host', readHost, '016100', 'a'],
  ['a host with more behind it', readHost, '01610000', null],
  ['an MX', readMx, '000a016100', { exchange: 'a', preference: 10 }],
  ['an MX without a host', readMx, '000a', null],
  ['an MX of one byte', readMx, '00', null],
  ['a text', readText, '026869', 'hi'],
  ['bytes across two strings', readText, '01c301a9', 'Ã©'],
  ['a text without a string', readText, '', ''],
  ['a string that is cut off', readText, '0341', null],
] as const)
  test(`${what} is read as ${JSON.stringify(value)}`, () => {
    const message = Buffer.from(bytes, 'hex')
    assert.deepEqual(read(message, { start: 0, end: message.length }), value)
  })

/** Reads every record of the reply. */
function readAll(bytes: Buffer): unknown {
  const reply = readReply(bytes, query)
  if (!reply) return null
  for (const record of [...reply.answers, ...reply.authorities])
    for (const read of [readIpv4, readIpv6, readHost, readMx, readText]) read(reply.bytes, record)
  return readAnswer(reply, typeNumbers.TXT, name)
}

const header = (counts: number[]) =>
  Buffer.concat([
    Buffer.from([query.id >> 8, query.id & 0xff, 0x80, 0x80]),
    Buffer.from([0, 1, ...counts.flatMap((count) => [count >> 8, count & 0xff])]),
    query.question,
  ])

test('check 52: any bytes are read without an exception, and accepted only with their question', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const reply = readReply(Buffer.from(bytes), query)
      const echoed = Buffer.from(bytes).toString('latin1').toLowerCase()
      if (reply)
        assert.ok(echoed.includes(query.question.toString('latin1').toLowerCase()) || reply.rcode !== 0)
    }),
    { numRuns: 2_000 },
  )
})

test('check 52: any records after the right question are read without an exception', () => {
  const count = fc.nat(5)
  fc.assert(
    fc.property(fc.tuple(count, count, count), fc.uint8Array({ maxLength: 600 }), (counts, bytes) => {
      readAll(Buffer.concat([header(counts), bytes]))
    }),
    { numRuns: 2_000 },
  )
})

test('check 52: a true answer with any bytes changed is read without an exception', () => {
  const answers: Answer[] = [
    { type: 'CNAME', name, ttl: 60, data: 'other.example' },
    { type: 'MX', name, ttl: 60, data: { preference: 10, exchange: 'mx.example' } },
    text('v=spf1 -all', 'other.example'),
  ]
  const whole = replyWith(answers)
  const changes = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(changes, (spots) => {
      const bytes = Buffer.from(whole)
      for (const [at, value] of spots) bytes[at] = value
      readAll(bytes)
    }),
    { numRuns: 3_000 },
  )
})

test('check 52: 4,000 names of 126 pointers each are read in bounded time', () => {
  const chainAt = 12 + query.question.length + 11
  const pointer = (at: number) => [0xc0 | (at >> 8), at & 0xff]
  const chain = Array.from({ length: 125 }, (_, index) =>
    pointer(index === 0 ? 12 : chainAt + 2 * (index - 1)),
  )
  const first = Buffer.from([0, 0, 99, 0, 1, 0, 0, 0, 0, 0, 250, ...chain.flat()])
  const record = Buffer.from([...pointer(chainAt + 248), 0, 16, 0, 1, 0, 0, 0, 0, 0, 0])
  const bytes = Buffer.concat([header([4_001, 0, 0]), first, ...Array.from({ length: 4_000 }, () => record)])
  const found = inCpuTime(500, () => {
    const reply = readReply(bytes, query)
    return reply && readAnswer(reply, typeNumbers.TXT, name)
  })
  assert.equal(found?.status === 'ok' && found.records.length, 4_000)
})

test('check 52: at most 4,096 records are read', () => {
  const record = Buffer.concat([Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, 2, 1, 0x61])])
  const whole = (count: number) =>
    Buffer.concat([header([count, 0, 0]), ...Array.from({ length: count }, () => record)])
  assert.equal(readReply(whole(4_096), query)?.answers.length, 4_096)
  assert.equal(readReply(whole(4_097), query), null)
})
