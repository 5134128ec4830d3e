// Every grammar that reads or writes bytes from strangers, with the tokens that it consists of.

import { readReply, typeNumbers, writeQuery } from '../../src/dns/message.ts'
import { readAnswer } from '../../src/dns/read-answer.ts'
import { readText } from '../../src/dns/read-record.ts'
import { writeName } from '../../src/dns/wire-name.ts'
import { meaningOf } from '../../src/flow/reports/report-meaning.ts'
import { replySubject } from '../../src/flow/sending/reply-draft.ts'
import { parseJson } from '../../src/http/body/parse-json.ts'
import { sendComponents } from '../../src/http/schemas/send.ts'
import { isWrittenAsEmail, parseEmail, sameAddressKey } from '../../src/mail/address.ts'
import { classify } from '../../src/mail/bounce/reply-code.ts'
import { readReport } from '../../src/mail/bounce/report.ts'
import { normalizeDomain } from '../../src/mail/domain-name.ts'
import { parseAddressList } from '../../src/mail/read/address-list.ts'
import { isAutomatic } from '../../src/mail/read/automatic.ts'
import { parseContentField } from '../../src/mail/read/content-field.ts'
import { parseDateField } from '../../src/mail/read/date-field.ts'
import { decodeEncodedWords } from '../../src/mail/read/encoded-word.ts'
import { scanHeader } from '../../src/mail/read/header-scan.ts'
import { htmlToText } from '../../src/mail/read/html-text.ts'
import { parseMail, plainTextView } from '../../src/mail/read/parse.ts'
import { extractNewText } from '../../src/mail/read/quote.ts'
import { findFields, readField } from '../../src/mail/read/raw-fields.ts'
import { messageIds } from '../../src/mail/read/references.ts'
import { transferDecoder } from '../../src/mail/read/transfer-stream.ts'
import { readQuery, writeVector } from '../../src/mail/read/words.ts'
import { encodeText } from '../../src/mail/write/body-encode.ts'
import { compose, type Draft } from '../../src/mail/write/compose.ts'
import { readChain } from '../../src/mailauth/arc/chain.ts'
import { BodyDigest } from '../../src/mailauth/dkim/body-digest.ts'
import { readKeyRecord } from '../../src/mailauth/dkim/key-record.ts'
import { readDkimSignature } from '../../src/mailauth/dkim/signature.ts'
import { readAuthorDomains } from '../../src/mailauth/dmarc/author-domain.ts'
import { parseDmarcRecord } from '../../src/mailauth/dmarc/record.ts'
import { HeaderField, readFields, signedHeader } from '../../src/mailauth/header-fields.ts'
import { parseStsPolicy, readStsId } from '../../src/mailauth/mta-sts.ts'
import { parseAuthResults } from '../../src/mailauth/parse-auth-results.ts'
import { expandName, expandText, type MacroValues, parseExplanation } from '../../src/mailauth/spf/macro.ts'
import { parseSpfRecord } from '../../src/mailauth/spf/record.ts'
import { ArchiveSearch } from '../../src/scan/archive.ts'
import { ReplyReader } from '../../src/smtp/client/reply-reader.ts'
import { formatReply } from '../../src/smtp/reply.ts'
import { parseCommand } from '../../src/smtp/server/command.ts'
import { pathLength } from '../../src/smtp/server/path.ts'
import { type Grammar, unique } from './linear-time.ts'

const bytesOf = (text: string) => Buffer.from(text, 'latin1')
const pieceBytes = 4096
/** Pieces as a stream reader receives them. */
function piecesOf(text: string): Buffer[] {
  const bytes = bytesOf(text)
  const count = Math.ceil(bytes.length / pieceBytes)
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes))
}
const crlf = '\r\n'

const addressTokens = [
  ...[' ', '\t', '.', '@', '<', '>', '(', ')', '"', '\\', ',', ';', ':'],
  ...['a', 'a@b.c', '=?', '=?utf-8?q?a?=', '\x01', 'é', `a${unique}@b.c `],
]

const header: Grammar = {
  name: 'the header block',
  read(text) {
    const scan = scanHeader(bytesOf(text))
    return ['x', 'subject'].flatMap((name) => scan.values(name))
  },
  tokens: [
    ':',
    ' ',
    '\t',
    '\r',
    '\n',
    '\r\n',
    '\r\n ',
    'x',
    'X: ',
    'X: a\r\n',
    'Subject',
    '\xff',
    '\xc3\xa9',
    '\0',
  ],
  frames: [
    ['X: ', crlf],
    ['Subject: a\r\n ', crlf],
  ],
  limits: [76, 998],
  separator: crlf,
}

const rawFields: Grammar = {
  name: 'header fields one by one',
  read: (text) => {
    const block = bytesOf(text)
    return findFields(block).spans.map((span) => readField(block, span))
  },
  tokens: [...header.tokens, '=?utf-8?q?=C3', '?='],
  frames: header.frames!,
  limits: header.limits!,
  separator: crlf,
  // Its name, its value, and the whole field.
  longestOutput: (length) => 3 * length + 1024,
}

const automatic: Grammar = {
  name: 'whether a mail is automatic',
  read: (text) => isAutomatic(scanHeader(bytesOf(text))),
  tokens: [
    'Auto-Submitted: ',
    'Precedence: ',
    'no',
    'bulk',
    '(',
    ')',
    '\\',
    '"',
    ';',
    ' ',
    crlf,
    '\r\n ',
    'é',
    '\0',
  ],
  frames: [
    ['Auto-Submitted: (', ') no\r\n'],
    ['Precedence: ', crlf],
  ],
  limits: [76, 998],
  separator: crlf,
}

const addresses: Grammar = {
  name: 'address lists',
  read: (field) => parseAddressList(field, 1001),
  tokens: addressTokens,
  frames: [
    ['<a', 'b@c.d>'],
    ['"', '" <a@b.c>'],
    ['a@b.c (', ')'],
    ['=?utf-8?q?', '?= <a@b.c>'],
    ['team: ', ';'],
  ],
  limits: [1000, 10_000],
}

const authors: Grammar = {
  name: 'the domain of the author',
  read: (text) => readAuthorDomains(bytesOf(text)),
  tokens: [...addressTokens, crlf, '\r\n ', '\r', '\0', 'From: ', 'from:', '=?utf-8?q?=40?='],
  frames: [
    ['From: ', crlf],
    ['From: <', '>\r\n'],
    ['From: "', '"\r\n'],
  ],
  limits: [200, 1000, 10_000],
}

const policyRecords: Grammar = {
  name: 'DMARC records',
  read: parseDmarcRecord,
  tokens: [';', '=', ' ', ',', '!', ':', 'p=none', 'rua=', 'mailto:a@b.c', 'a', '%41', '\0', 'é', '9'],
  frames: [
    ['v=DMARC1;', ''],
    ['v=DMARC1; rua=', ';p=none'],
  ],
  limits: [4096],
  separator: ';',
  // The original record and its parsed form.
  longestOutput: (length) => 2 * length + 1024,
}

const stsRecords: Grammar = {
  name: 'MTA-STS records',
  read: (text) => readStsId([text]),
  tokens: [';', '=', ' ', '\t', 'id=', 'a=b;', '\0', '9'],
  frames: [['v=STSv1;', 'id=1']],
  limits: [4096],
}

const stsPolicies: Grammar = {
  name: 'MTA-STS policies',
  read: parseStsPolicy,
  tokens: ['\n', '\r', ':', ' ', '\t', 'mx: ', '*.', 'a.', '-', '_', 'max_age:', 'a:b\n', '9'],
  frames: [
    ['version: STSv1\nmode: none\nmax_age: 1\n', ''],
    ['version: STSv1\nmode: enforce\nmx: ', '\nmax_age: 1'],
  ],
  limits: [65_536],
}

const singleAddresses: Grammar = {
  name: 'single addresses',
  read: (text) =>
    text.split('\n').map((one) => [parseEmail(one), isWrittenAsEmail(one), sameAddressKey(one)]),
  tokens: [...addressTokens, '-', 'xn--', '漢', '\u{1f600}'],
  frames: [
    ['a', '@b.example'],
    ['"', '"@b.example'],
    ['a@', '.example'],
  ],
  limits: [64, 320],
  separator: '\n',
  // The key, and the address in parts and whole, with its domain in A-labels.
  longestOutput: (length) => 4 * length + 1024,
}

const domains: Grammar = {
  name: 'domain names',
  read: (text) => text.split('\n').map(normalizeDomain),
  tokens: ['.', '-', 'a', 'xn--', '漢', '\u3002', '\u00b7', '\u30fb', ' ', '\u200d', 'ß', '0x1'],
  frames: [['a', '.example']],
  limits: [63, 253],
  separator: '\n',
  // Status and text of a refusal, for each.
  longestOutput: (length) => 60 * length + 1024,
}

const encodedWords: Grammar = {
  name: 'encoded words',
  read: decodeEncodedWords,
  tokens: [
    ...[
      '=?',
      '?=',
      '?',
      '=',
      '_',
      ' ',
      '*',
      '=?utf-8?q?',
      '=?utf-8?b?',
      '=?x?q?',
      '=41',
      'QUJD',
      'é',
      '\xf6',
    ],
    ...[
      '=?utf-8?q?a?=',
      '=?iso-8859-1?Q?\xf6?=',
      '=?utf-16?b?2AA=?=',
      '=?iso-2022-jp?b?GyRC?=',
      '=?gb18030?q?=81?=',
      `=?${unique}?q?a?=`,
    ],
  ],
  frames: [
    ['=?utf-8?q?', '?='],
    ['=?utf-8?b?', '?='],
    ['=?', '?q?a?='],
  ],
  limits: [75, 5000],
}

const parameters: Grammar = {
  name: 'parameters',
  read: parseContentField,
  tokens: [
    ...[';', '=', '"', '\\', ' ', '\t', '(', ')', '*', "'", '%41', '%', 'a', 'a=b;', 'a*0=b;', 'a*1*=%41;'],
    ...[' name=', '=?utf-8?q?a?=', "a*0*=utf-16''%d8;", `a${unique}*0=b;`],
  ],
  frames: [
    ['text/plain; name="', '"'],
    ["attachment; filename*=utf-8''", ''],
    ["a/b; name*0*=utf-8''", '; name*1=x'],
    ['text/plain (', ')'],
  ],
  limits: [100, 1000, 1 << 16],
  separator: '; ',
}

const dates: Grammar = {
  name: 'dates',
  read: (text) => text.split('\n').map(parseDateField),
  tokens: [
    '1',
    ' ',
    '-',
    ',',
    ':',
    '+',
    'jan',
    '1 jan ',
    '1 jan 2003 ',
    '10:52',
    '(',
    ')',
    '\\',
    'a',
    'gmt',
    '+0200',
  ],
  frames: [
    ['Tue, 1 Jul ', ' 10:52:37 +0200'],
    ['1 Jul 2003 10:52 (', ')'],
  ],
  limits: [20, 1000],
  separator: '\n',
}

const ids: Grammar = {
  name: 'lists of ids',
  read: (field) => messageIds(field, 100),
  tokens: ['<', '>', '@', ' ', '\t', 'a', '<a@b>', '<a@b> ', '"', '\\', '(', '\x01'],
  frames: [
    ['<', '>'],
    ['<a', '@b>'],
  ],
  limits: [998],
  separator: ' ',
}

const html: Grammar = {
  name: 'HTML',
  read: htmlToText,
  tokens: [
    ...[
      '<',
      '>',
      '"',
      "'",
      '&',
      '&lt;',
      '&#0;',
      ' ',
      '\n',
      'a',
      'x\n\n\n',
      '<p>',
      '<br>',
      '<hr>',
      '<li>',
      '<td>',
    ],
    ...[
      '<div>',
      '<blockquote>',
      '</blockquote>',
      '<pre>',
      '</pre>',
      '<a href=x',
      '<a href="http://a">',
      '</a>',
      '</p>',
    ],
    ...['<!--', '-->', '<!', '<style>', '</style', '<a b="', '<title', '\u00ad'],
    ...[
      '<b>',
      '</b>',
      '<b style="',
      '<p class=a style="opacity:0">',
      '<table>',
      '<tr>',
      '</table>',
      '<template>',
    ],
    ...['.a{', '}', 'b>a,', ':not(', 'opacity:0;', '@media(', '/*', '\\', '--a:var(--a);', 'calc('],
  ],
  frames: [
    [`${'<blockquote>'.repeat(10)}<pre>`, ''],
    ['<a href="http://', '">x</a>'],
    ['<p ', '>'],
  ],
  limits: [8 << 10],
  separator: '',
}

const quotes: Grammar = {
  name: 'quotes',
  read: extractNewText,
  tokens: [
    ...[
      '>',
      '> ',
      '\n',
      '\r\n',
      ' ',
      '-',
      '_',
      ':',
      '<',
      'a',
      'On ',
      'wrote:',
      ' on ',
      '<a> ',
      'From: a\n',
      'To: a\n',
    ],
    ...[
      '-----Original Message-----\n',
      '-- \n',
      'Sent from ',
      'On 1 Jul 2003, a wrote:\n',
      '\n\n\n',
      'Le ',
      ' a écrit :',
    ],
  ],
  frames: [
    ['On 1 Jul 2003, ', ' wrote:\n> x\n'],
    ['text\n> ', '\n'],
  ],
  limits: [200, 500],
  separator: '\n',
}

const parted = 'Content-Type: multipart/mixed; boundary=b\r\n\r\n'
const mimeTokens = [
  ...['--b\r\n', '--b--\r\n', '--b', '\r\n', '\n', '-', 'a', '=', 'QUJD', ' ', '\xff', '<p>', '\r\n\r\n'],
  ...[
    '--b\r\n\r\nx\r\n',
    '--b\r\nContent-Type: text/html\r\n\r\n<p>x\r\n',
    '--b\r\nContent-Type: message/rfc822\r\n\r\n',
  ],
  `--b\r\n${parted}`,
  `--b\r\nContent-Type: multipart/mixed; boundary=b${unique}\r\n\r\n`,
  '--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n',
  '--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n',
  '--b\r\nContent-Type: a/b; name="=?utf-8?q?a?="\r\nContent-Transfer-Encoding: base64\r\n\r\nQQ==\r\n',
]
const mime: Grammar = {
  name: 'MIME',
  read: (text) => parseMail(bytesOf(text)),
  tokens: mimeTokens,
  frames: [
    [parted, '--b--\r\n'],
    ['Content-Type: text/html\r\n\r\n', ''],
    ['Content-Transfer-Encoding: quoted-printable\r\n\r\n', ''],
    ['Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 a\r\n', 'end\r\n'],
  ],
  separator: crlf,
  // Text and HTML, the new text, and 999 attachment entries with digests and spans.
  longestOutput: (length) => 8 * length + 300_000,
}

const fieldNames = [
  'From',
  'To',
  'Cc',
  'Reply-To',
  'Subject',
  'Date',
  'References',
  'In-Reply-To',
  'Message-ID',
]
const fields: Grammar = {
  times: 9,
  name: 'all fields of a mail',
  read(text) {
    const value = text.replace(/[\r\n]/g, ' ')
    return parseMail(bytesOf(`${fieldNames.map((name) => `${name}: ${value}${crlf}`).join('')}${crlf}x`))
  },
  tokens: [...addressTokens, '<a@b>', 'Re: ', '%41', '1 jan 2003 ', 'QUJD', '?='],
  frames: [['<a', 'b@c>']],
  limits: [998, 10_000],
  longestOutput: (length) => 9 * length + 1024,
}

const transferEncodings: Grammar = {
  name: 'transfer encodings',
  read: (text) =>
    (['base64', 'quoted-printable', 'uuencode'] as const).map((encoding) => {
      const decoder = transferDecoder(encoding)
      return [...piecesOf(text).map((piece) => decoder.decode(piece)), decoder.end()]
    }),
  tokens: [
    '=',
    '=41',
    '=\r\n',
    ' ',
    '\t',
    '\r\n',
    '\n',
    'QUJD',
    'QQ==',
    'a',
    '!',
    '\xff',
    '-',
    '_',
    'M',
    '`',
    'end\n',
  ],
  frames: [
    ['QUJD', '=='],
    ['begin 644 a\n', '`\nend\n'],
  ],
  limits: [76, 998],
  separator: crlf,
  longestOutput: (length) => 3 * length,
}

const report = 'Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n'
const reports: Grammar = {
  name: 'reports',
  read(text) {
    const found = readReport(bytesOf(text))
    return [found, found?.kind === 'delivery' ? found.recipients.map(meaningOf) : []]
  },
  tokens: [
    ...[
      ' ',
      '\r\n',
      '\r\n\r\n',
      ';',
      ':',
      '-',
      '.',
      '@',
      '<',
      '>',
      '(',
      'a',
      '5',
      '550 ',
      '5.1.1 ',
      'a@b.c ',
      '<a@b>:',
    ],
    ...[
      'Action: failed\r\n',
      'Final-Recipient: rfc822;a@b\r\n',
      'Status: 5.1.1\r\n',
      'Diagnostic-Code: smtp; ',
    ],
    ...[
      'To: a@b\r\n',
      `bounce-${'a'.repeat(48)}@x `,
      'fail',
      'deliver ',
      'message ',
      'return ',
      '---- copy of',
    ],
    ...[
      `a${unique}@b.c `,
      `<a${unique}@b.c>: 550 5.1.1 no user\r\n`,
      'From: MAILER-DAEMON@a\r\n',
      'X-Failed-Recipients: a@b\r\n',
      'said: 550 ',
      '--b\r\n',
    ],
  ],
  frames: [
    [`${report}Content-Type: message/delivery-status\r\n\r\n`, '\r\n--b--'],
    [
      `${report}Content-Type: message/delivery-status\r\n\r\nAction: failed\r\nDiagnostic-Code: `,
      '\r\n--b--',
    ],
    [`${report}Content-Type: message/feedback-report\r\n\r\n`, '\r\n--b--'],
    [
      `${report}Content-Type: message/feedback-report\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n`,
      '\r\n--b--',
    ],
    ['From: MAILER-DAEMON@far.test\r\nSubject: failure notice\r\n\r\n', ''],
    ['From: MAILER-DAEMON@far.test\r\nSubject: ', '\r\n\r\nfailed'],
  ],
  limits: [1000, 10_000],
  separator: ' ',
  longestOutput: (length) => 3 * length + 200_000,
}

const replyWords: Grammar = {
  name: 'the words of SMTP replies',
  read: (text) =>
    text
      .split('\n')
      .map((line) => classify({ code: 550, enhanced: null, text: line.slice(0, 1000) }, 'rcpt')),
  tokens: [
    ...[
      ' ',
      '.',
      '-',
      'user',
      'unknown',
      'no',
      'not',
      'does not have a ',
      'account',
      'sender',
      'rate',
      'exceed',
      'list',
    ],
    ...[
      'blocked',
      'mailbox',
      'quota',
      'tls',
      'gray',
      'spam',
      'over',
      'content',
      'size',
      'adresse',
      'valid',
      'here',
      'a',
    ],
  ],
  limits: [1000],
  separator: '\n',
}

const replies: Grammar = {
  name: 'SMTP replies',
  read(text) {
    const bytes = bytesOf(text)
    const whole = new ReplyReader()
    const pieces = new ReplyReader()
    const found = whole.push(bytes)
    for (let at = 0; at < bytes.length; at += 7) found.push(...pieces.push(bytes.subarray(at, at + 7)))
    return found.map(({ reply, lines }) => [formatReply(reply), lines])
  },
  tokens: [
    '250',
    '250-',
    '250 ',
    '550 5.1.1 ',
    '5.1.1 ',
    '\r\n',
    '\n',
    '\r',
    ' ',
    '-',
    'a',
    '\0',
    '\xff',
    '250-a\r\n',
    '250 a\r\n',
  ],
  frames: [
    ['250-', '\r\n250 ok\r\n'],
    ['550 5.1.1 ', crlf],
  ],
  limits: [512, 4096],
  separator: '',
  // Both readers return the lines and the text. A line of three characters takes six on the wire.
  longestOutput: (length) => 8 * length + 1024,
}

const commands: Grammar = {
  name: 'SMTP commands',
  read: (text) =>
    text.split('\n').map((line) => [parseCommand(bytesOf(`${line}\r`), 'mx.example'), pathLength(line)]),
  tokens: [
    ...[
      'MAIL FROM:',
      'RCPT TO:',
      'EHLO ',
      'BDAT ',
      '<',
      '>',
      '"',
      '\\',
      '@',
      ',',
      ':',
      ' ',
      '=',
      '[',
      ']',
      '.',
      '-',
      'a',
      '1',
    ],
    ...[' SIZE=1', ' BODY=8BITMIME', '\n', '\xc3\xa9', '\0', 'xn--', '@a,', 'IPv6:'],
  ],
  frames: [
    ['MAIL FROM:<', '>'],
    ['RCPT TO:<a@', '>'],
    ['MAIL FROM:<a@b> ', ''],
    ['RCPT TO:<"', '"@b>'],
  ],
  limits: [256, 512, 2048, 16_384],
  separator: '\n',
  longestOutput: (length) => 100 * length + 1024,
}

const json: Grammar = {
  name: 'JSON',
  read(text) {
    try {
      return JSON.stringify(parseJson(bytesOf(text)))
    } catch (fault) {
      return (fault as Error).message
    }
  },
  tokens: [
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\\',
    '\\u0000',
    '\\ud800',
    '1',
    '-',
    'e',
    '.',
    ' ',
    'null',
    '"a":',
    '"__proto__":',
    '[],',
    '"a",',
  ],
  frames: [
    ['{"a":"', '"}'],
    ['[', '0]'],
    ['{"a":', '1}'],
  ],
  separator: ',',
  longestOutput: (length) => 6 * length + 1024,
}

/** Every pattern in a schema of a send, as the validator compiles it. */
const written = JSON.stringify(sendComponents).match(/(?<="pattern":)"(?:[^"\\]|\\.)*"/g) ?? []
const patterns = [...new Set(written)].map((text) => new RegExp(JSON.parse(text) as string, 'u'))
const schemas: Grammar = {
  name: 'the patterns of schemas',
  times: patterns.length,
  read: (text) => patterns.map((pattern) => pattern.test(text)),
  tokens: [
    ...[
      ' ',
      '\u00a0',
      '\u200b',
      '\x01',
      '\n',
      'a',
      'A',
      '1',
      '.',
      '-',
      '_',
      '/',
      ';',
      '=',
      '"',
      '; a=b',
      '; a="b"',
      'é',
      '漢',
    ],
    ...['msg_', '<', '>', ':', '\u{1f600}'],
  ],
  frames: [
    ['text/plain', ''],
    ['a', '\n'],
  ],
}

const draft: Draft = {
  from: { email: 'a@b.example' },
  to: [{ email: 'c@d.example' }],
  cc: [],
  replyTo: null,
  subject: '',
  text: null,
  html: null,
  messageId: '<1@b.example>',
  inReplyTo: null,
  references: [],
  headers: {},
  date: new Date(0),
  attachments: [],
  seed: '',
}
const oneLineOf = (text: string) => text.replace(/[\r\n\0]/g, ' ').toWellFormed()
const writtenFields: Grammar = {
  name: 'fields that are written',
  times: 4,
  read(text) {
    const line = oneLineOf(text)
    const replied = { subject: replySubject(line), inReplyTo: line, references: line.split(' ') }
    return compose({
      ...draft,
      ...replied,
      to: [{ email: 'c@d.example', name: line }],
      headers: { 'X-A': line },
    })
  },
  tokens: [' ', '"', '\\', '=?', '?=', '<a@b> ', 'a', '漢', '\u{1f600}', '\t', 'Re:', 're: '],
  limits: [60, 76, 900, 998],
  separator: ' ',
  // An encoded word appears three times, an id twice.
  longestOutput: (length) => 30 * length + 4096,
}

const writtenFiles: Grammar = {
  name: 'attachments that are written',
  times: 3,
  read(text) {
    const line = oneLineOf(text)
    const file = { filename: line, contentType: line, content: Buffer.alloc(0), contentId: null }
    return compose({ ...draft, attachments: [{ ...file, disposition: 'attachment' }] })
  },
  tokens: ['text/plain', ';', '; a=b', '="', '"', ' ', 'a', '漢', '%', "'", '*', '/'],
  frames: [['text/plain; a="', '"']],
  limits: [60, 70],
  separator: ' ',
  longestOutput: (length) => 20 * length + 4096,
}

const writtenTexts: Grammar = {
  name: 'texts that are written',
  read: (text) => encodeText(text),
  tokens: ['\r\n', '\n', '\r', '.', 'From ', '--=_', '=', ' ', 'a', 'é', '漢', '\t'],
  limits: [76, 998],
  separator: '\n',
  longestOutput: (length) => 8 * length + 1024,
}

const words: Grammar = {
  // One character can become eighteen letters.
  times: 5,
  size: 1 << 14,
  name: 'the words of full text',
  read: (text) => [writeVector({ fields: [text], prefix: 'abc' }), readQuery(text.slice(0, 1000))],
  tokens: [
    ' ',
    'a',
    'é',
    'e\u0301',
    '\u0301',
    'ß',
    'ﷺ',
    '漢',
    'ﾞ',
    'ก',
    "'",
    '\\',
    '"',
    '*',
    '\u200b',
    'ﬃ',
    'a1 ',
    '\u{1f600}',
  ],
  limits: [64, 1000],
  separator: ' ',
  // A word of one character gets quotes, the prefix and its positions; ﷺ becomes eighteen letters.
  longestOutput: (length) => Math.min(20 * length + 1024, 3 << 20),
}

const archives: Grammar = {
  name: 'archives',
  read(text) {
    const search = new ArchiveSearch()
    for (const piece of piecesOf(text)) search.add(piece)
    return search.findUnscannable()
  },
  tokens: ['PK\x03\x04', 'PK\x01\x02', 'PK', '\0', '\x1f\x8b', '\xff', '\x14\0\0\0', 'a'],
  separator: '',
}

const plainViews: Grammar = {
  name: 'mail shown as plain text',
  read: (text) => plainTextView(bytesOf(text), 'because'),
  tokens: [crlf, '\n', '\r', ':', ' ', 'a', '\xff', '\0', '\xc3\xa9', 'X: a\r\n'],
  frames: [['X: a\r\n\r\n', '']],
  separator: crlf,
  longestOutput: (length) => 2 * length + 1024,
}

const spfRecords: Grammar = {
  name: 'SPF records',
  read: (text) => text.split('\n').map((terms) => parseSpfRecord(`v=spf1 ${terms}`)),
  tokens: [
    ...[
      ' ',
      'a',
      ':',
      '/',
      '//',
      '.',
      '-',
      '=',
      '1',
      '\t',
      '\xff',
      'x=',
      'ip4:192.0.2.1 ',
      'a:%{d} ',
      '?all ',
    ],
    ...['%{', '}', '%{d1r-}', '%%', '%{s255r.-+,/_=}', 'mx/24//64 ', 'include:a.b '],
  ],
  frames: [
    ['a:', '.example'],
    ['x=', ''],
    ['mx:a.example/', '//64'],
    ['ip6:', '/1'],
  ],
  limits: [8192],
  separator: '\n',
  // A result, a name and the term itself, for terms of two characters.
  longestOutput: (length) => 20 * length + 1024,
}

const macroValues = Object.fromEntries(
  [...'slodiphcrtv'].map((letter) => [letter, `${letter.repeat(30)}.example`]),
) as unknown as MacroValues

const spfMacros: Grammar = {
  name: 'SPF macros',
  read: (text) =>
    text.split('\n').map((one) => {
      const pieces = parseExplanation(one)
      return pieces && [expandName(pieces, macroValues), expandText(pieces, macroValues, 400)]
    }),
  tokens: [
    '%',
    '{',
    '%{s}',
    '%{L}',
    '%{d255r}',
    '%{h1r.-+,/_=}',
    '%%',
    '%_',
    'a',
    '.',
    ' ',
    '1',
    'r',
    '}',
    '%{d9',
  ],
  frames: [
    ['%{d', '}'],
    ['%{dr', '}'],
  ],
  limits: [253, 400],
  separator: '\n',
  longestOutput: (length) => 20 * length + 1024,
}

const tagTokens = [
  ...[';', '=', ':', ' ', '\t', crlf, '\r\n ', '/', '@', '.', '-', 'a', '\xff', '\0'],
  ...['a=b;', `t${unique}=b;`, 'h=from:to;', 'bh=QUJD;', 'd=a.example;', 'i=@a.example;', 'p=QUJD'],
]

const signatures: Grammar = {
  name: 'DKIM signatures',
  read: (text) => readDkimSignature(new HeaderField(`DKIM-Signature:${text}`), 0),
  tokens: tagTokens,
  frames: [
    ['v=1; a=rsa-sha256; d=a.example; s=s; b=QUJD; bh=QUJD; h=', ''],
    ['v=1; a=rsa-sha256; s=s; h=from; bh=QUJD; b=QUJD; d=', ''],
    ['v=1; a=rsa-sha256; d=a.example; h=from; bh=QUJD; b=QUJD; s=', ''],
  ],
  limits: [253, 16 * 1024],
  // The field, with and without its signature, and its tags.
  longestOutput: (length) => 4 * length + 1024,
}

const keyRecords: Grammar = {
  name: 'DKIM keys',
  read: readKeyRecord,
  tokens: tagTokens,
  frames: [['v=DKIM1; p=', '']],
  limits: [8 * 1024],
}

const signedHeaders: Grammar = {
  name: 'canonical headers',
  read(text) {
    const fields = readFields(bytesOf(text)) ?? []
    const own = new HeaderField('DKIM-Signature: a')
    const names = fields.map(({ name }) => name)
    return [
      ...(['simple', 'relaxed'] as const).map((canonicalization) =>
        signedHeader(fields, own, { names, canonicalization }),
      ),
      readChain(fields, 0).status,
    ]
  },
  tokens: [
    ...[':', ' ', '\t', '\r', '\n', crlf, '\r\n ', 'x', 'X: a\r\n', `X${unique}: a\r\n`, '\xff'],
    ...['ARC-Seal: i=1; cv=none\r\n', 'ARC-Authentication-Results: i=1; (', '(', ')', '\\'],
  ],
  limits: [998],
  separator: crlf,
  longestOutput: (length) => 2 * length + 1024,
}

const canonicalBodies: Grammar = {
  name: 'canonical bodies',
  read: (text) =>
    (['simple', 'relaxed'] as const).map((form) => {
      const digest = new BodyDigest(form, [null, 0, 1, 1000])
      for (const piece of piecesOf(text)) digest.update(piece)
      digest.end()
      return digest.hashOf(null)?.digest
    }),
  tokens: [' ', '\t', '\r', '\n', crlf, ' \r\n', 'a', '\0', '\xff'],
  frames: [['a', 'a']],
  separator: crlf,
}

const authResults: Grammar = {
  name: 'authentication results',
  read: parseAuthResults,
  tokens: [
    ...['(', ')', '"', '\\', ';', '=', '.', '/', '@', ' ', '\t', '\r\n ', 'a', '\0'],
    ...['dkim=pass', 'header.d=', '; spf=pass', `p${unique}.x=y `, '"a"', '(a)'],
  ],
  frames: [
    ['a.example; dkim=pass header.d=', ''],
    ['a.example; (', ')'],
    ['a.example; dkim="', '"'],
  ],
  limits: [16 * 1024],
  separator: '; ',
}

const dnsQuery = writeQuery({ type: typeNumbers.TXT, name: writeName('a.example')! }, 'with')
/** The class, a TTL and the length of the data, as all of these records have them. They mark and count the records. */
const dnsMiddle = '\0\x01\0\0\0\x09\0\x02'
const [dnsText, dnsAlias] = [`\0\x10${dnsMiddle}`, `\0\x05${dnsMiddle}`]

const dnsReplies: Grammar = {
  name: 'replies of DNS',
  read(text) {
    const header = Buffer.alloc(12)
    header.writeUInt16BE(dnsQuery.id, 0)
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(Math.min(text.split(dnsMiddle).length - 1, 0xffff), 6)
    const reply = readReply(Buffer.concat([header, dnsQuery.question, bytesOf(text)]), dnsQuery)
    const found = reply && readAnswer(reply, typeNumbers.TXT, 'a.example')
    return found?.status === 'ok' ? found.records.map((record) => readText(reply!.bytes, record)) : found
  },
  tokens: [
    `\xc0\x0c${dnsText}\x01a`,
    `\xc0\x0c${dnsText}\x02a`,
    `\xc0\x0c${dnsAlias}\xc0\x0c`,
    `\0${dnsText}\x01a`,
    `\x01b${'\xc0\x0c'}${dnsText}\x01b`,
    `${`\x3f${'.'.repeat(63)}`.repeat(3)}\0${dnsText}\x01a`,
    `\xc0\x29${dnsAlias}\xc0\x29`,
    '\xc0\x0c',
    '\0',
  ],
}

export const grammars: Grammar[] = [
  ...[
    header,
    rawFields,
    automatic,
    addresses,
    authors,
    stsRecords,
    stsPolicies,
    policyRecords,
    singleAddresses,
    domains,
    encodedWords,
    parameters,
    dates,
    ids,
    html,
    quotes,
    mime,
    fields,
  ],
  ...[
    transferEncodings,
    reports,
    replyWords,
    replies,
    commands,
    json,
    schemas,
    writtenFields,
    writtenFiles,
    writtenTexts,
    words,
    archives,
    plainViews,
    signatures,
    keyRecords,
    signedHeaders,
    canonicalBodies,
    authResults,
    dnsReplies,
  ],
  ...[spfRecords, spfMacros],
]
