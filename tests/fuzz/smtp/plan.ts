// Plans conversations with the mail server from the SMTP grammar and from published dialogues, each by its number.
import fc from 'fast-check'
import {
  dialogueNames,
  fuzzInputNames,
  readDialogue,
  readFuzzInput,
  saidIn,
} from '../../support/smtp-dialogues.ts'
import { stuff } from '../../support/wire.ts'

/** Bytes are written as latin1. `{0}`, `{1}` and `{2}` are the addresses of three inboxes. */
export type Step =
  /** Writes without waiting for a reply. */
  | { step: 'write'; bytes: string }
  | { step: 'ask'; bytes: string; replies: number }
  /**
   * A message by BDAT in these chunks, the last one with LAST. Each chunk's length is taken when the chunk is written.
   */
  | { step: 'chunks'; chunks: string[]; isPipelined: boolean }
  /** DATA, then these bytes after the 354. */
  | { step: 'message'; bytes: string }
  | { step: 'tls' }
  /** Waits for this many event loop iterations. */
  | { step: 'pause'; turns: number }

export interface Plan {
  /** Bytes sent before everything else. The first `proxyBytes` of them are a valid PROXY protocol header. */
  opening: string
  proxyBytes: number
  /** Does not wait for the greeting. */
  isHasty: boolean
  /** The server may read the bytes differently, so replies are awaited only briefly, and may not come. */
  isWild: boolean
  steps: Step[]
  /** Sizes of the writes, repeated in a cycle. */
  cuts: number[]
  ending: 'end' | 'destroy' | 'reset'
}

/** Number of peer addresses behind proxies, each in its own network. It bounds what the server remembers about peers. */
const peers = 16_384

const ask = (...lines: string[]): Step => ({
  step: 'ask',
  bytes: lines.map((line) => `${line}\r\n`).join(''),
  replies: lines.length,
})
const anyBytes = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes).toString('latin1'))

const helloNames = fc.constantFrom(
  ...[
    'client.example',
    '[192.0.2.1]',
    '[IPv6:2001:db8::1]',
    'localhost',
    'a',
    '',
    ' ',
    'b\xfccher.example',
    '[',
    '-',
  ],
  ...['x'.repeat(255), 'x'.repeat(480), 'x'.repeat(600), 'a\tb', 'a b c', '\0'],
)
const hello = fc.oneof(
  { weight: 6, arbitrary: fc.constant('EHLO client.example') },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('EHLO', 'HELO', 'ehlo', 'Helo'), helloNames)
      .map((words) => words.join(' ')),
  },
)

const utf8 = (text: string) => Buffer.from(text).toString('latin1')
const reversePaths = fc.constantFrom(
  ...[
    '<>',
    '<a@sender.example>',
    '<A.B+c@Sender.Example>',
    '<"a b"@sender.example>',
    '<a@[192.0.2.1]>',
    ' <a@b.example>',
  ],
  ...[
    '<@hop.example:a@b.example>',
    utf8('<jörg@bücher.example>'),
    '<a@xn--bcher-kva.example>',
    '<a>',
    'a@b.example',
  ],
  ...[
    '<a@b.example',
    '<<a@b.example>>',
    `<${'a'.repeat(64)}@b.example>`,
    `<${'a'.repeat(65)}@b.example>`,
    '<@>',
    '<a@-.b>',
  ],
  ...[
    `<a@${'b'.repeat(63)}.example>`,
    `<a@${'b.'.repeat(130)}example>`,
    '<"\\"@b.example>',
    '<a@b.example>x',
    '',
  ],
)
const parameters = fc.constantFrom(
  ...[
    'SIZE=100',
    'SIZE=0',
    'SIZE=99999999999',
    'SIZE=',
    'SIZE=-1',
    'SIZE=1e3',
    'BODY=8BITMIME',
    'BODY=7BIT',
    'BODY=',
  ],
  ...[
    'BODY=BINARYMIME',
    'SMTPUTF8',
    'SMTPUTF8=1',
    'RET=FULL',
    'AUTH=<>',
    'X=y',
    '=',
    'SIZE=100',
    utf8('Ü=1'),
    '',
    'BY=1',
  ],
)
const mail = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('<a@sender.example>', '<>') },
      { weight: 1, arbitrary: reversePaths },
    ),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(parameters, { maxLength: 4 }) },
    ),
  )
  .map(([path, words]) => [`MAIL FROM:${path}`, ...words].join(' '))

const ourPaths = fc.constantFrom('<{0}>', '<{1}>', '<{2}>')
const otherPaths = fc.constantFrom(
  ...[
    '<nobody-here@inbox.localhost>',
    '<a@elsewhere.example>',
    '<postmaster>',
    '<Postmaster@{host}>',
    '<abuse@{host}>',
    '<>',
  ],
  ...[
    '<@hop.example:{0}>',
    ' <{0}>',
    '<"{0}>',
    '{0}',
    '<{0}',
    '<{0}> X=y',
    '<{0}>>',
    utf8('<ü@{host}>'),
    '<x@{host}> NOTIFY=NEVER',
  ],
  ...[
    '<bounce-0@{host}>',
    `<${'x'.repeat(300)}@{host}>`,
    `<"${'\\"'.repeat(20)}"@{host}>`,
    '<a@[127.0.0.1]>',
    '<fbl@{host}>',
  ],
)
const recipient = fc
  .oneof({ weight: 5, arbitrary: ourPaths }, { weight: 1, arbitrary: otherPaths })
  .map((path) => `RCPT TO:${path}`)
/** The server accepts up to six at once if it has room for three, because some are the same. */
const recipients = fc.array(recipient, { minLength: 1, maxLength: 5 })

const textLines = fc.constantFrom(
  ...[
    'Subject: test',
    'From: Ada <ada@sender.example>',
    'To: {0}',
    'MIME-Version: 1.0',
    '',
    'text',
    '.',
    '..',
    '. .',
    '.x',
  ],
  ...[
    'Content-Type: multipart/mixed; boundary=b',
    '--b',
    '--b--',
    'Content-Transfer-Encoding: base64',
    'QUJD',
    '\ttab',
  ],
  ...[
    'Received: from a by b; Mon, 1 Jan 2024 00:00:00 +0000',
    'Message-ID: <1@sender.example>',
    utf8('grüße'),
    '\xff\xfe',
  ],
  ...[
    'x'.repeat(998),
    'x'.repeat(1000),
    'x'.repeat(5000),
    'MAIL FROM:<a@b.example>',
    'DATA',
    'QUIT',
    'BDAT 5 LAST',
    ' ',
  ],
  ...[
    'Delivered-To: {0}',
    'Content-Type: text/html; charset=utf-8',
    '<p>&amp;</p>',
    'begin 644 a',
    '\x7f\x01',
  ],
)
/** Lines that the server must refuse, and lines that smugglers try. */
const brokenLines = fc.constantFrom(
  'a\nb',
  'a\rb',
  '\n.\n',
  '\r.\r',
  '\n.\r\nMAIL FROM:<x@y.example>',
  '\0',
  '\r\r',
  '\n',
)
const lines = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: textLines },
    { weight: 2, arbitrary: anyBytes(60).map((bytes) => bytes.replace(/[\r\n\0]/g, '')) },
  ),
  { maxLength: 25 },
)
const text = fc.oneof(
  { weight: 10, arbitrary: lines.map((all) => all.map((line) => `${line}\r\n`).join('')) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(lines, brokenLines, lines)
      .map(([one, line, other]) => [...one, line, ...other, ''].join('\r\n')),
  },
  { weight: 1, arbitrary: anyBytes(400) },
  // Sizes above what the database stores inline, and above what the server accepts.
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(5_000, 70_000, 300_000, 1_100_000)
      .map((size) => `Subject: large\r\n\r\n${'0123456789abcde\r\n'.repeat(size / 17)}`),
  },
)

const byData = text.map((content): Step[] => [
  { step: 'message', bytes: stuff(Buffer.from(content, 'latin1')).toString('latin1') },
])
/** A message in chunks cut anywhere. The last chunk may be empty. */
const byChunks = fc
  .tuple(text, fc.array(fc.nat(400), { maxLength: 4 }), fc.boolean())
  .map(([content, sizes, isPipelined]): Step[] => {
    const chunks: string[] = []
    let rest = content
    for (const size of sizes) {
      chunks.push(rest.slice(0, size))
      rest = rest.slice(size)
    }
    return [{ step: 'chunks', chunks: [...chunks, rest], isPipelined }]
  })

/** Returns the message's chunks, each after its command. */
export function writeChunks(chunks: string[]): string[] {
  return chunks.map(
    (chunk, index) => `BDAT ${chunk.length}${index === chunks.length - 1 ? ' LAST' : ''}\r\n${chunk}`,
  )
}

/** RFC 3030 3: a body without lines, after a header with lines. */
const binary = fc.tuple(recipients, anyBytes(500), fc.nat(100)).map(([to, bytes, size]): Step[] => {
  const content = `Subject: binary\r\n\r\n${bytes}`
  const chunks = [content.slice(0, size), content.slice(size)]
  return [
    ask('MAIL FROM:<a@sender.example> BODY=BINARYMIME', ...to),
    { step: 'chunks', chunks, isPipelined: false },
  ]
})
const transaction = fc
  .tuple(
    mail,
    recipients,
    fc.boolean(),
    fc.oneof({ weight: 3, arbitrary: byData }, { weight: 2, arbitrary: byChunks }),
  )
  .map(([from, to, isPipelined, content]): Step[] => [
    ...(isPipelined ? [ask(from, ...to)] : [ask(from), ...to.map((line) => ask(line))]),
    ...content,
  ])
const oddLines = fc.constantFrom(
  ...[
    'NOOP',
    'NOOP x',
    'RSET',
    'RSET x',
    'VRFY a',
    'EXPN a',
    'HELP',
    'HELP DATA',
    'QUIT',
    'AUTH PLAIN AAAA',
    'TURN',
    'XYZZY',
  ],
  ...[
    'DATA',
    'DATA x',
    'BDAT',
    'BDAT x',
    'BDAT 0 LAST',
    'BDAT 99999999999999999',
    'BDAT -1',
    'STARTTLS x',
    'GET / HTTP/1.1',
  ],
  ...[
    '',
    ' ',
    'mail from:<a@b.example>',
    'rcpt to:<{0}>',
    'MAIL',
    'RCPT',
    'MAIL FROM',
    'rset',
    'noop',
    '\x16\x03\x01',
    '\xff',
  ],
  ...[
    'x'.repeat(511),
    'x'.repeat(600),
    'x'.repeat(3000),
    `NOOP ${'x'.repeat(505)}`,
    `NOOP ${'x'.repeat(506)}`,
    'ETRN a',
    'LHLO a',
  ],
)
const odd = oddLines.map((line): Step[] => [ask(line)])
const flood = fc
  .tuple(fc.constantFrom('NOOP', 'RSET', 'VRFY a', 'MAIL FROM:<>'), fc.integer({ min: 20, max: 800 }))
  .map(([line, times]): Step[] => [ask(...Array.from({ length: times }, () => line))])
const pause = fc.nat(8).map((turns): Step[] => [{ step: 'pause', turns }])
const tls = hello.map((line): Step[] => [{ step: 'tls' }, ask(line)])

const orderly = fc
  .tuple(
    hello,
    fc.option(tls, { freq: 3 }),
    fc.array(
      fc.oneof(
        { weight: 8, arbitrary: transaction },
        { weight: 1, arbitrary: binary },
        { weight: 2, arbitrary: odd },
        { weight: 1, arbitrary: pause },
        { weight: 1, arbitrary: hello.map((line) => [ask(line)]) },
      ),
      { minLength: 1, maxLength: 5 },
    ),
  )
  .map(([line, secured, parts]) => [ask(line), ...(secured ?? []), ...parts.flat()])

/** Returns a conversation as bytes alone, independent of the replies. */
const bytesOf = (steps: Step[]) =>
  steps.map((step) => {
    if (step.step === 'chunks') return writeChunks(step.chunks).join('')
    if (step.step === 'message') return `DATA\r\n${step.bytes}`
    if (step.step === 'tls') return 'STARTTLS\r\n'
    return step.step === 'pause' ? '' : step.bytes
  })

const forInboxes = (bytes: string) => bytes.replaceAll(/[^\s<>:]+@testserver/g, '{0}')
const dialogues = [
  ...dialogueNames.map((name) => readDialogue(name).flatMap((row) => saidIn(row)?.toString('latin1') ?? [])),
  ...fuzzInputNames.map((name) =>
    readFuzzInput(name)
      .replaceAll('\n', '\r\n')
      .split(/(?<=\n)/),
  ),
].map((said) => said.map(forInboxes))

interface Mutation {
  kind: 'flip' | 'remove' | 'repeat' | 'insert' | 'swap' | 'truncate'
  at: number
  other: number
  bytes: string
}
const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom('flip', 'remove', 'repeat', 'insert', 'swap', 'truncate'),
  at: fc.nat(),
  other: fc.nat(),
  bytes: fc.oneof(
    oddLines.map((line) => `${line}\r\n`),
    anyBytes(8),
    brokenLines,
    fc.constantFrom('\r\n.\r\n', '\r\n', 'DATA\r\n'),
  ),
})

function mutate(said: string[], { kind, at, other, bytes }: Mutation): string[] {
  if (said.length === 0) return [bytes]
  const index = at % said.length
  const chosen = said[index]!
  const cut = other % (chosen.length + 1)
  if (kind === 'remove') return said.toSpliced(index, 1)
  if (kind === 'repeat') return said.toSpliced(index, 0, chosen)
  if (kind === 'insert') return said.with(index, chosen.slice(0, cut) + bytes + chosen.slice(cut))
  if (kind === 'swap') return said.with(index, said[other % said.length]!).with(other % said.length, chosen)
  if (kind === 'truncate') return said.with(index, chosen.slice(0, cut))
  const flipped = String.fromCharCode((chosen.charCodeAt(cut) || 0) ^ (1 << (other % 8)))
  return said.with(index, chosen.slice(0, cut) + flipped + chosen.slice(cut + 1))
}

/** If the suite is absent, only conversations from the grammar are mutated. */
const mutated = fc
  .tuple(
    dialogues.length === 0
      ? orderly.map(bytesOf)
      : fc.oneof(orderly.map(bytesOf), fc.constantFrom(...dialogues)),
    fc.array(mutation, { maxLength: 6 }),
    fc.array(fc.nat(3), { minLength: 1, maxLength: 5 }),
  )
  .map(([said, mutations, waits]) =>
    mutations.reduce(mutate, said).map((bytes, index): Step => {
      const replies = waits[index % waits.length]!
      return replies === 0 ? { step: 'write', bytes } : { step: 'ask', bytes, replies: 1 }
    }),
  )
const noise = fc
  .array(
    fc.oneof(
      anyBytes(200),
      oddLines.map((line) => `${line}\r\n`),
    ),
    { maxLength: 8 },
  )
  .map((all) => all.map((bytes): Step => ({ step: 'write', bytes })))

const proxyAddress = fc.oneof(
  {
    weight: 60,
    arbitrary: fc
      .nat(peers - 1)
      .map((peer) => `${11 + (peer >> 12)}.${(peer >> 4) & 255}.${(peer & 15) << 4}.7`),
  },
  { weight: 20, arbitrary: fc.nat(peers - 1).map((peer) => `2001:db8:${peer.toString(16)}::1`) },
  // The server slows down and then refuses peers that come again and again.
  { weight: 1, arbitrary: fc.constantFrom('192.0.2.1', '192.0.2.2') },
)
const proxyLine = proxyAddress.map((address) => {
  const [family, server] = address.includes(':') ? ['TCP6', '2001:db8::25'] : ['TCP4', '198.51.100.25']
  return `PROXY ${family} ${address} ${server} 50000 25\r\n`
})
const signature = '\r\n\r\n\0\r\nQUIT\n'
const proxyBinary = fc.tuple(fc.nat(peers - 1), fc.nat(20)).map(([peer, extra]) => {
  const source = [11 + (peer >> 12), (peer >> 4) & 255, (peer & 15) << 4, 8]
  const rest = [...source, 198, 51, 100, 25, 0xc3, 0x50, 0, 25, ...Array.from({ length: extra }, () => 0)]
  return signature + Buffer.from([0x21, 0x11, 0, rest.length, ...rest]).toString('latin1')
})
const properOpening = fc
  .oneof(
    { weight: 2, arbitrary: fc.constant('') },
    { weight: 4, arbitrary: proxyLine },
    { weight: 2, arbitrary: proxyBinary },
    { weight: 1, arbitrary: fc.constantFrom('PROXY UNKNOWN\r\n', `${signature}\x20\0\0\0`) },
  )
  .map((opening) => ({ opening, proxyBytes: opening.length }))
const brokenOpening = fc
  .constantFrom(
    ...[
      'PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n',
      'PROXY \r\n',
      'PROXY TCP4 1.2.3.4 5.6.7.8 99999 2\r\n',
      `PROXY ${'x'.repeat(120)}`,
    ],
    ...[
      `${signature}\x21\x31\0\0`,
      `${signature}\x21\x11\xff\xff`,
      signature,
      'PROXY TCP4 1.2.3.4',
      'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n',
    ],
  )
  .map((opening) => ({ opening, proxyBytes: 0 }))

const cuts = fc.oneof(
  { weight: 3, arbitrary: fc.constant<number[]>([100_000]) },
  { weight: 2, arbitrary: fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1, maxLength: 6 }) },
  { weight: 1, arbitrary: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 6 }) },
)
const ending = fc.oneof(
  { weight: 12, arbitrary: fc.constant('end' as const) },
  { weight: 1, arbitrary: fc.constantFrom('destroy' as const, 'reset' as const) },
)

const orderlyPlan = fc.tuple(properOpening, orderly, cuts, ending).map(
  ([opening, steps, sizes, end]): Plan => ({
    ...opening,
    isHasty: false,
    isWild: false,
    steps,
    cuts: sizes,
    ending: end,
  }),
)
const wildPlan = fc
  .tuple(
    fc.oneof({ weight: 8, arbitrary: properOpening }, { weight: 1, arbitrary: brokenOpening }),
    fc.oneof(
      { weight: 6, arbitrary: mutated },
      { weight: 1, arbitrary: noise },
      { weight: 1, arbitrary: flood },
    ),
    cuts,
    ending,
    fc.nat(19),
  )
  .map(
    ([opening, steps, sizes, end, hasty]): Plan => ({
      ...opening,
      isHasty: hasty === 0,
      isWild: true,
      steps,
      cuts: sizes,
      ending: end,
    }),
  )
const plan = fc.oneof({ weight: 3, arbitrary: orderlyPlan }, { weight: 2, arbitrary: wildPlan })

/** Returns the conversation with this number under the seed, which is always the same. */
export function planOf(seed: number, number: number): Plan {
  return fc.sample(plan, { seed: (seed + Math.imul(number, 0x9e3779b1)) | 0, numRuns: 1 })[0]!
}
