// Compares single header fields with another parser's readings: each part that we keep is equal, or a named exception.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { type MimePart, splitMime } from '../../src/mail/read/mime-parts.ts'
import { parseMail } from '../../src/mail/read/parse.ts'

const suite = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
  'header-fields-stalwart',
)
assert.ok(existsSync(suite) || !process.env['CI'], `${suite} is absent`)
const skip = existsSync(suite) ? false : 'the published header fields are absent (POSTHORN_TESTDATA)'

interface Case {
  header: string
  expected: unknown
}

interface Comparison {
  file: string
  field: string
  /** Returns what we keep of the field, through the reader of received mail. */
  read: (header: string) => unknown
  /** Returns the same parts of the expectation. */
  wanted: (expected: unknown, header: string) => unknown
  /** Why we differ from the expectation, with the case numbers, counted from 0 in the file's order. */
  exceptions: [because: string, cases: number[]][]
}

/** Fields that we do not read, with the reason. */
const without: Record<string, string> = {
  list: 'no reader: Keywords and other lists of phrases are shown in the source of a message alone',
  received:
    'no reader: Received fields are counted, against loops (RFC 5321 6.3), and what strangers wrote in them is not believed',
}

const addressExceptions: Comparison['exceptions'] = [
  [
    'RFC 5322 3.4: "the meaning of the information in a comment is unspecified": it is no part of a name beside angle brackets',
    [8, 10, 22, 56],
  ],
  [
    'RFC 5322 2.2.3: "Unfolding is accomplished by simply removing any CRLF that is immediately followed by WSP": the backslash quotes the space, and the parenthesis behind it ends the comment',
    [9],
  ],
  [
    'RFC 5322 4.4: "When interpreting addresses, the route portion SHOULD be ignored"; 3.2.3: "the optional comments and FWS surrounding the rest of the characters are not part of the atom"',
    [13],
  ],
  [
    'RFC 5322 3.2.3: "the optional comments and FWS surrounding the rest of the characters are not part of the atom", neither of its name nor of its domain',
    [14],
  ],
  [
    'not shown by our API: white space at the ends of a name, even where quotes keep it (RFC 5322 3.2.4)',
    [33],
  ],
  [
    'RFC 5322 3.4.1: "a locally interpreted string followed by the at-sign character ("@", ASCII value 64) followed by an Internet domain": the URLs of List fields (RFC 2369) are no addresses',
    [37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47],
  ],
]

const contentExceptions: Comparison['exceptions'] = [
  [
    'RFC 2231 4.1: "Language and character set information only appear at the beginning of a given parameter value"',
    [31],
  ],
  [
    "RFC 2047 6.2: \"any 'linear-white-space' that separates a pair of adjacent 'encoded-word's is ignored\"",
    [34],
  ],
  [
    'RFC 2045 5.2: "It is also recommend that this default be assumed when a syntactically invalid Content-Type header field is encountered"; of the parameters beside it the charset and the name are used all the same',
    [43, 65, 66, 71, 72],
  ],
  [
    'RFC 2183 2: "disposition-type *(";" disposition-parm)": there is no type, and a name that stands beside it is used all the same',
    [62, 63],
  ],
  [
    'not shown by our API: a name that is nothing but white space, of which a fold leaves one (RFC 5322 2.2.3 leaves all)',
    [55, 56, 57],
  ],
  [
    'RFC 2231 3: "The count starts at 0 and increments by 1 for each subsequent section of the parameter value"; 7: no asterisk is part of a name',
    [59, 61],
  ],
  [
    'RFC 2045 5.1: "token := 1*<any (US-ASCII) CHAR except SPACE, CTLs, or tspecials>", and a slash is one of these: no type, so the default of 5.2',
    [76, 77, 78],
  ],
]

const obsoleteInIds =
  'RFC 5322 4.5.4: "none of the optional CFWS in the local-part and the domain is part of the obs-id-left and obs-id-right"'

const comparisons: Comparison[] = [
  { file: 'address', field: 'To', read: readTo, wanted: wantedMailboxes, exceptions: addressExceptions },
  {
    file: 'content_type',
    field: 'Content-Type or Content-Disposition',
    read: readContent,
    wanted: wantedContent,
    exceptions: contentExceptions,
  },
  {
    file: 'date',
    field: 'Date',
    read: (header) => parsed('Date', header).date?.toISOString() ?? null,
    wanted: wantedInstant,
    exceptions: [
      [
        'RFC 5322 3.3: "month = "Jan" / "Feb" / "Mar"": a number is no month, nor is it a time without its colons',
        [10, 12],
      ],
    ],
  },
  {
    file: 'id',
    field: 'Message-ID',
    read: (header) => parsed('Message-ID', header).messageId,
    // If a field that allows one id has several, we keep the last.
    wanted: (expected) => wantedIds(expected).at(-1) ?? null,
    exceptions: [[obsoleteInIds, [6]]],
  },
  {
    file: 'id',
    field: 'References',
    read: (header) => parsed('References', header).references,
    wanted: wantedIds,
    exceptions: [
      [obsoleteInIds, [6]],
      [
        'RFC 5322 4.5.4: "the phrases in the "In-Reply-To:" and "References:" fields are ignored": without angle brackets a word is one',
        [10],
      ],
    ],
  },
  {
    file: 'unstructured',
    field: 'Subject',
    read: (header) => parsed('Subject', header).subject,
    wanted: (expected) => expected ?? '',
    exceptions: [
      [
        "RFC 2047 5: \"MUST be separated from any adjacent 'encoded-word' or 'text' by 'linear-white-space'\": where it is not, it is decoded, and no space is added that nobody wrote",
        [21, 22, 27, 28],
      ],
      [
        'RFC 5322 2.2.3: "Unfolding is accomplished by simply removing any CRLF that is immediately followed by WSP": the white space of a fold stays, within an encoded word too',
        [24, 25, 26],
      ],
    ],
  },
]

for (const { file, field, read, wanted, exceptions } of comparisons)
  test(`check 58: the published fields of ${file}.json read as published, as ${field}`, { skip }, (t) => {
    const excepted = new Map(exceptions.flatMap(([because, cases]) => cases.map((one) => [one, because])))
    const cases: Case[] = JSON.parse(readFileSync(join(suite, `${file}.json`), 'utf8'))
    const differing: string[] = []
    for (const [index, { header, expected }] of cases.entries()) {
      const [ours, theirs] = [JSON.stringify(read(header)), JSON.stringify(wanted(expected, header))]
      if (ours === theirs)
        assert.ok(!excepted.delete(index), `${file} ${index} is equal, and no exception any more`)
      else if (!excepted.has(index)) differing.push(`${file} ${index}: ${ours}, and not ${theirs}`)
    }
    const equal = cases.length - excepted.size - differing.length
    t.diagnostic(`${file} as ${field}: ${equal} of ${cases.length} equal, ${excepted.size} exceptions`)
    for (const [because, numbers] of exceptions) t.diagnostic(`${file} ${numbers.join(', ')}: ${because}`)
    assert.deepEqual(differing, [])
  })

test('check 58: every published file of header fields is compared, or has a reason why not', {
  skip,
}, (t) => {
  const files = ['address', 'content_type', 'date', 'id', 'list', 'received', 'unstructured']
  const compared = comparisons.map(({ file }) => file)
  for (const [file, because] of Object.entries(without)) {
    const cases: Case[] = JSON.parse(readFileSync(join(suite, `${file}.json`), 'utf8'))
    t.diagnostic(`${file}: ${cases.length} cases without a counterpart: ${because}`)
  }
  assert.deepEqual([...new Set([...compared, ...Object.keys(without)])].sort(), files)
})

function parsed(name: string, header: string): ReturnType<typeof parseMail> {
  return parseMail(Buffer.from(`${name}:${header}`))
}

function readTo(header: string): unknown {
  return parsed('To', header).to
}

interface Address {
  name: string | null
  address: string | null
}

/** Returns the mailboxes, including those in groups. Names of groups, and names without an address, are not kept. */
function wantedMailboxes(expected: unknown): unknown {
  const { List, Group } = (expected ?? {}) as { List?: Address[]; Group?: { addresses: Address[] }[] }
  const all = List ?? Group?.flatMap(({ addresses }) => addresses) ?? []
  const mailboxes = all.filter(({ address }) => address !== null)
  return mailboxes.map(({ name, address }) => ({ email: address, ...(name !== null && { name }) }))
}

/** The file has both kinds of fields. A type contains a slash, a disposition does not. */
function isType(header: string): boolean {
  return header.split(';')[0]!.includes('/')
}

function readContent(header: string): unknown {
  const partOf = (name: string): MimePart => splitMime(Buffer.from(`${name}:${header}`)).root
  if (isType(header)) {
    const { contentType, typeParameters } = partOf('Content-Type')
    return [contentType, [...typeParameters].sort()]
  }
  const { value, parameters } = partOf('Content-Disposition').disposition
  return [value, [...parameters].sort()]
}

interface Content {
  c_type: string
  c_subtype: string | null
  attributes?: [string, string][] | null
}

/** A malformed type becomes the default of RFC 2045 5.2. A parameter's language is not kept. */
function wantedContent(expected: unknown, header: string): unknown {
  const { c_type, c_subtype, attributes } = (expected ?? { c_type: '', c_subtype: null }) as Content
  const type = c_subtype === null ? 'text/plain' : `${c_type}/${c_subtype}`
  const parameters = (attributes ?? []).filter(([name]) => !name.endsWith('-language'))
  return [isType(header) ? type : c_type, parameters.sort()]
}

function wantedInstant(expected: unknown): unknown {
  if (expected === null) return null
  const at = expected as Record<string, number> & { tz_before_gmt: boolean }
  const localMs = Date.UTC(at['year']!, at['month']! - 1, at['day'], at['hour'], at['minute'], at['second'])
  const offsetMinutes = at['tz_hour']! * 60 + at['tz_minute']!
  return new Date(localMs + (at.tz_before_gmt ? offsetMinutes : -offsetMinutes) * 60_000).toISOString()
}

function wantedIds(expected: unknown): string[] {
  return ((expected ?? []) as string[]).map((id) => `<${id}>`)
}
