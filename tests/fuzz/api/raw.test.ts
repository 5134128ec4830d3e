// Sends bytes that no client library would send; each case gets one refusal or a close, and leaves nothing behind.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { largestContentBytes, setStage } from '../../http/stage.ts'

const silentMs = 1_500
const stage = await setStage({ after })
const { secret, api } = await stage.createCaller()

async function isAlive(): Promise<boolean> {
  return (await api.call('/v1/me')).status === 200
}

const lines = (...parts: string[]) => `${parts.join('\r\n')}\r\n\r\n`
const keyed = `x-api-key: ${secret}`
const me = lines('GET /v1/me HTTP/1.1', 'host: x', keyed, 'connection: close')
const post = (...headers: string[]) =>
  lines('POST /v1/inboxes HTTP/1.1', 'host: x', keyed, 'content-type: application/json', ...headers)
const many = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index))

/** Each ambiguous request hides this second request, which must not be answered. */
const hidden = lines('GET /v1/me HTTP/1.1', 'host: x', keyed)
const twoWays: [name: string, bytes: string][] = [
  ['length and chunks', `${post('content-length: 5', 'transfer-encoding: chunked')}0\r\n\r\n${hidden}`],
  ['chunks and length', `${post('transfer-encoding: chunked', 'content-length: 5')}0\r\n\r\n${hidden}`],
  ['two lengths', `${post('content-length: 2', 'content-length: 30')}{}${hidden}`],
  ['a list of lengths', `${post('content-length: 2, 30')}{}${hidden}`],
  ['a length with a sign', `${post('content-length: +2')}{}${hidden}`],
  ['a negative length', `${post('content-length: -2')}{}${hidden}`],
  ['a hexadecimal length', `${post('content-length: 0x2')}{}${hidden}`],
  ['a length past 64 bits', `${post('content-length: 18446744073709551618')}{}${hidden}`],
  ['an unknown coding', `${post('transfer-encoding: xchunked')}2\r\n{}\r\n0\r\n\r\n${hidden}`],
  [
    'chunked before another coding',
    `${post('transfer-encoding: chunked, gzip')}2\r\n{}\r\n0\r\n\r\n${hidden}`,
  ],
  ['a space before the colon', `${post('transfer-encoding : chunked')}0\r\n\r\n${hidden}`],
  ['a folded coding', `${post('transfer-encoding:', ' chunked')}0\r\n\r\n${hidden}`],
  [
    'a chunk size past 64 bits',
    `${post('transfer-encoding: chunked')}fffffffffffffffff\r\n{}\r\n0\r\n\r\n${hidden}`,
  ],
  ['a chunk size with a sign', `${post('transfer-encoding: chunked')}-2\r\n{}\r\n0\r\n\r\n${hidden}`],
  [
    'a chunk that is longer than it says',
    `${post('transfer-encoding: chunked')}2\r\n{} \r\n0\r\n\r\n${hidden}`,
  ],
  ['a bare carriage return in a header', `${post('a: b\rcontent-length: 2')}{}${hidden}`],
  ['a NUL in a header', `${post('a: b\0', 'content-length: 2')}{}${hidden}`],
  ['a header without a colon', `${post('content-length 2')}{}${hidden}`],
  ['a header without a name', `${post(': 2')}{}${hidden}`],
]

for (const [name, bytes] of twoWays)
  test(`check 74: ${name} gets one refusal, and the bytes after it are ignored`, async () => {
    const answers = await talk(bytes)
    assert.deepEqual(answers.statuses, [400], answers.text)
    assert.ok(await isAlive())
  })

const others: [name: string, bytes: string | Buffer, statuses: number[]][] = [
  ['a URL of a megabyte', lines(`GET /v1/me?${'a'.repeat(1 << 20)} HTTP/1.1`, 'host: x', keyed), [400]],
  ['a path of a megabyte', lines(`GET /v1/${'a'.repeat(1 << 20)} HTTP/1.1`, 'host: x', keyed), [400]],
  ['a header of a megabyte', lines('GET /v1/me HTTP/1.1', 'host: x', `a: ${'a'.repeat(1 << 20)}`), [400]],
  [
    'ten thousand headers',
    lines('GET /v1/me HTTP/1.1', 'host: x', ...many(10_000, (index) => `a${index}: b`)),
    [400],
  ],
  [
    'a thousand short headers',
    lines('GET /v1/me HTTP/1.1', 'host: x', ...many(1_500, () => 'a: b'), 'connection: close'),
    [400, 401],
  ],
  [
    'bad percent-encoding',
    lines('GET /v1/inboxes/%zz HTTP/1.1', 'host: x', keyed, 'connection: close'),
    [404],
  ],
  [
    'half a percent-encoding',
    lines('GET /v1/inboxes/% HTTP/1.1', 'host: x', keyed, 'connection: close'),
    [404],
  ],
  ['overlong UTF-8', lines('GET /v1/inboxes/%c0%af HTTP/1.1', 'host: x', keyed, 'connection: close'), [404]],
  [
    'half a surrogate pair',
    lines('GET /v1/inboxes/%ed%a0%80 HTTP/1.1', 'host: x', keyed, 'connection: close'),
    [404],
  ],
  [
    'bad percent-encoding in the query',
    lines('GET /v1/inboxes?q=%zz HTTP/1.1', 'host: x', keyed, 'connection: close'),
    [200],
  ],
  [
    // HTTP/1.1 requires servers to accept the absolute form. The host in the URL changes nothing.
    'a URL of another host',
    lines('GET http://far.test/v1/me HTTP/1.1', 'host: far.test', keyed, 'connection: close'),
    [200],
  ],
  ['a URL of a file', lines('GET file:///etc/passwd HTTP/1.1', 'host: x', keyed, 'connection: close'), [404]],
  [
    'a path that climbs',
    lines('GET /v1/../../etc/passwd HTTP/1.1', 'host: x', keyed, 'connection: close'),
    [404],
  ],
  ['two slashes', lines('GET //v1/me HTTP/1.1', 'host: x', keyed, 'connection: close'), [404]],
  [
    'bytes beyond ASCII in the path',
    Buffer.from(lines('GET /v1/m\xe9 HTTP/1.1', 'host: x', 'connection: close'), 'latin1'),
    [400, 404],
  ],
  ['a NUL in the path', lines('GET /v1/\0me HTTP/1.1', 'host: x', 'connection: close'), [400]],
  ['an asterisk', lines('OPTIONS * HTTP/1.1', 'host: x', 'connection: close'), [404]],
  ['TRACE', lines('TRACE /v1/me HTTP/1.1', 'host: x', 'connection: close'), [404, 400]],
  ['CONNECT', lines('CONNECT far.test:25 HTTP/1.1', 'host: far.test', 'connection: close'), []],
  ['a method in small letters', lines('get /v1/me HTTP/1.1', 'host: x'), [400]],
  ['a method of a kilobyte', lines(`${'G'.repeat(1_000)} /v1/me HTTP/1.1`, 'host: x'), [400]],
  ['HTTP/0.9', 'GET /v1/me\r\n', [400]],
  ['HTTP/1.0', lines('GET /v1/me HTTP/1.0', keyed), [200]],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
  ['HTTP/9.9', lines('GET /v1/me HTTP/9.9', 'host: x'), [400]],
  ['TLS', Buffer.from('16030100c8010000c40303', 'hex'), [400]],
  [
    'a socket of the web',
    lines('GET /v1/me HTTP/1.1', 'host: x', keyed, 'connection: upgrade, close', 'upgrade: websocket'),
    [200],
  ],
  [
    'an impossible expectation',
    lines('GET /v1/me HTTP/1.1', 'host: x', keyed, 'expect: miracles', 'connection: close'),
    [200, 417],
  ],
  ['two hosts', lines('GET /v1/me HTTP/1.1', 'host: x', 'host: y', keyed, 'connection: close'), [200, 400]],
  ['two keys', lines('GET /v1/me HTTP/1.1', 'host: x', keyed, keyed, 'connection: close'), [401]],
  ['empty lines first', `\r\n\r\n${me}`, [200]],
]

for (const [name, bytes, statuses] of others)
  test(`check 74: ${name} gets ${statuses.join(' or ') || 'a closed connection'}`, async () => {
    const answers = await talk(bytes)
    assert.ok(answers.statuses.length <= 1, answers.text)
    if (statuses.length > 0) assert.ok(statuses.includes(answers.statuses[0]!), answers.text.slice(0, 500))
    else assert.deepEqual(answers.statuses, [])
    assert.ok(await isAlive())
  })

test('check 74: compressed bodies are refused before they are unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(8 << 20, 0x20))
  for (const coding of ['gzip', 'deflate', 'br', 'gzip, gzip', 'GZIP', 'x']) {
    const head = post(`content-length: ${bomb.length}`, `content-encoding: ${coding}`, 'connection: close')
    assert.deepEqual((await talk(Buffer.concat([Buffer.from(head), bomb]))).statuses, [400], coding)
  }
})

test('check 74: chunks without an end are cut at a bound', async () => {
  const chunk = Buffer.from(`10000\r\n${' '.repeat(0x10000)}\r\n`)
  const { socket, said } = open()
  socket.write(post('transfer-encoding: chunked'))
  let writtenBytes = 0
  await new Promise<void>((resolve) => {
    const write = () => {
      while (!socket.destroyed && socket.writable) {
        writtenBytes += chunk.length
        if (!socket.write(chunk)) return
      }
    }
    socket
      .on('drain', write)
      .on('close', resolve)
      .on('data', () => socket.destroy())
    write()
  })
  assert.match(said(), /^HTTP\/1\.1 413 /)
  // The kernel buffers some bytes that the service never reads.
  assert.ok(writtenBytes < 2 * (largestContentBytes * 1.5 + (1 << 20)) + (32 << 20), `${writtenBytes} bytes`)
  assert.ok(await isAlive())
})

test('check 74: bodies that never arrive delay no one else', async () => {
  const waiting = many(200, (index) =>
    index % 2 ? post('content-length: 100') : post('transfer-encoding: chunked'),
  )
  const sockets = waiting.map((head) => {
    const { socket } = open()
    socket.write(`${head}1`)
    return socket
  })
  for (let count = 0; count < 20; count++) assert.ok(await isAlive())
  for (const socket of sockets) socket.destroy()
  assert.ok(await isAlive())
})

test('check 74: requests in one segment are answered one by one, in order', async () => {
  const unknown = (index: number) => `inb_${String(index).padStart(24, '0')}`
  const requests = many(50, (index) =>
    index % 3 === 0
      ? lines(`GET /v1/nothing-${index} HTTP/1.1`, 'host: x')
      : index % 3 === 1
        ? lines(`GET /v1/inboxes/${unknown(index)} HTTP/1.1`, 'host: x')
        : `${post('content-length: 2')}[]`,
  )
  const { statuses } = await talk(requests.join('') + me)
  assert.deepEqual(statuses, [...requests.map((_, index) => [404, 401, 400][index % 3]), 200])
})

test('check 74: any bytes get only HTTP answers without errors, and the service survives', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ...[
        '\r\n',
        '\n',
        '\r',
        ' ',
        ':',
        '\0',
        'HTTP/1.1',
        'GET ',
        'POST ',
        '/v1/me',
        '/v1/inboxes',
        'host: x\r\n',
      ],
      ...[
        'content-length: 5\r\n',
        'transfer-encoding: chunked\r\n',
        '0\r\n\r\n',
        '{}',
        'a: b\r\n',
        `${keyed}\r\n`,
      ],
    ),
    fc.string({ unit: 'binary-ascii', maxLength: 5 }),
  )
  const cut = fc.record({
    at: fc.nat({ max: 300 }),
    drop: fc.nat({ max: 20 }),
    put: fc.array(piece, { maxLength: 3 }).map((pieces) => pieces.join('')),
  })
  const seeds = fc.constantFrom(
    me,
    `${post('content-length: 2')}{}`,
    `${post('transfer-encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
  )
  const requests = fc.oneof(
    fc
      .tuple(seeds, fc.array(cut, { minLength: 1, maxLength: 3 }))
      .map(([seed, cuts]) =>
        cuts.reduce((text, { at, drop, put }) => text.slice(0, at) + put + text.slice(at + drop), seed),
      ),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  )
  const property = fc.asyncProperty(
    fc.array(requests, { minLength: 10, maxLength: 10 }),
    async (together) => {
      const answers = await Promise.all(together.map((bytes) => talk(bytes + me)))
      for (const { statuses, text } of answers) {
        assert.ok(text === '' || text.startsWith('HTTP/1.1 '), text)
        assert.ok(
          statuses.every((status) => status < 500),
          text,
        )
      }
    },
  )
  await fc.assert(property, { numRuns: 60 })
  assert.ok(await isAlive())
  assert.ok(!stage.log().includes('"level":50'))
})

function open(): { socket: Socket; said(): string } {
  const socket = connect(stage.port, '127.0.0.1')
  let text = ''
  // Ignore errors of writes to a closed connection.
  socket.on('data', (chunk) => (text += chunk.toString('latin1'))).on('error', () => {})
  return { socket, said: () => text }
}

/** Returns all answers until the connection ends. Gives up after the service was silent for `silentMs`. */
function talk(bytes: string | Buffer): Promise<{ statuses: number[]; text: string }> {
  const { socket, said } = open()
  socket.write(bytes)
  return new Promise((resolve) => {
    const leaving = setTimeout(() => socket.end(), silentMs)
    socket.on('data', () => leaving.refresh())
    socket.on('close', () => {
      clearTimeout(leaving)
      const statuses = [...said().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
      resolve({ statuses, text: said() })
    })
  })
}
