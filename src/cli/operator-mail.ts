// `posthorn mail …` and `posthorn captured …`: the operator's mail, and mail that capture kept from leaving.

import { isUtf8 } from 'node:buffer'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import { type Command, InvalidArgumentError } from 'commander'
import { pageOf } from '../base/page-of.ts'
import {
  listOperatorMail,
  type MailKind,
  type OperatorMail,
  openOperatorMail,
  type ReadOperatorMail,
  readOperatorMail,
} from '../flow/reading/operator-mail.ts'
import { ParsePool } from '../mail/parse-pool.ts'
import { presentHead, presentWhole, writeMailbox } from '../operator/desk/present-mail.ts'
import {
  addPageOptions,
  type OutputOptions,
  type PageOptions,
  print,
  table,
  withFoundation,
} from './context.ts'
import { inertLine, inertText } from './inert-text.ts'
import type { Output } from './terminal.ts'

const capturedHelp = `
With POSTHORN_DELIVERY=capture, as in development, mail for other domains stays on this machine. The newest 1,000 are
kept. The reply to each delivery has the id of the mail ("250 2.0.0 Ok: captured as ID").`

const mailHelp = `
Mail for postmaster@, abuse@ and the other addresses of the service, reports about TLS, and bounces and complaints that
Posthorn could not read. Mail is kept for 30 days, and of read mail the newest 1,000. Showing a mail marks it as read,
as the operator's desk does.`

const sourceHelp = 'print only the bytes as received; on a terminal, control characters are shown as symbols'

export function addMailCommands(program: Command): void {
  const captured = program
    .command('captured')
    .description('list and show mail that was captured instead of sent')
    .addHelpText('after', capturedHelp)
  addPageOptions(captured.command('list').description('list captured mail, newest first')).action((options) =>
    list('captured', options),
  )
  addShow(captured, 'captured')
  const mail = program
    .command('mail')
    .description('list and show the operator’s mail: to postmaster@, abuse@ and the like')
    .addHelpText('after', mailHelp)
  addPageOptions(mail.command('list').description('list the mail, newest first, with a mark at unread mail'))
    .option('--unread', 'list only unread mail')
    .action((options) => list('kept', options))
  addShow(mail, 'kept')
}

function addShow(command: Command, kind: MailKind): void {
  command
    .command('show')
    .argument('<id>', 'the id of the mail', requireId)
    .description('show one mail: sender, recipients, time, text')
    .option('--source', sourceHelp)
    .option('--json', 'print JSON')
    .action((id, { source, ...options }) =>
      source ? showSource(kind, id, options) : show(kind, id, options),
    )
}

async function list(
  kind: MailKind,
  { limit, cursor, unread = false, ...options }: PageOptions & { unread?: boolean },
): Promise<void> {
  const wanted = { beforeId: cursor ?? null, limit: limit + 1, isUnread: unread }
  const rows = await withFoundation(options, (foundation) => listOperatorMail(foundation, kind, wanted))
  const { page, nextCursor } = pageOf(rows, limit)
  const name = kind === 'captured' ? 'captured' : 'mails'
  print(options, { [name]: page.map(presentHead), nextCursor }, describeList(kind, page, nextCursor))
}

function describeList(kind: MailKind, page: OperatorMail[], nextCursor: string | null): string {
  if (page.length === 0) return kind === 'captured' ? 'No mail has been captured.' : 'There is no such mail.'
  const head = ['ID', kind === 'kept' ? 'NEW' : 'BYTES', 'RECEIVED', 'TO', 'FROM', 'SUBJECT']
  const rows = page.map((mail) => [
    mail.id,
    kind === 'kept' ? (mail.isUnread ? 'new' : '') : String(mail.sizeBytes),
    mail.at.toISOString(),
    cut(mail.recipients.join(', ')),
    cut(mail.from ? writeMailbox(mail.from) : mail.sender),
    cut(mail.subject),
  ])
  const more = nextCursor ? [`\nFor more: --cursor ${nextCursor}`] : []
  return [table(head, rows), ...more].join('\n')
}

/** A stranger's subject must not make every line of the table long. */
const maxCell = 60

function cut(text: string): string {
  const characters = Array.from(text)
  return characters.length > maxCell ? `${characters.slice(0, maxCell - 1).join('')}…` : text
}

const readingMs = 10_000

async function show(kind: MailKind, id: string, options: OutputOptions): Promise<void> {
  const read = await withFoundation(options, async ({ db, blobs, clock }) => {
    const parsePool = new ParsePool({ threads: 1, timeoutMs: readingMs })
    try {
      return await readOperatorMail({ db, blobs, clock, parsePool }, kind, id)
    } finally {
      await parsePool.close()
    }
  })
  print(options, presentWhole(read), describe(read))
}

/** The fields that assign a mail to a thread (RFC 5322 3.6.4). */
const threadFields = ['message-id', 'in-reply-to', 'references']

function describe({ mail, header, content }: ReadOperatorMail): string {
  const { from, subject, sender, recipients, at, sizeBytes } = mail
  const files = content.attachments.map(
    ({ filename, contentType, sizeBytes }) => `${filename} (${contentType}, ${sizeBytes} bytes)`,
  )
  const thread = threadFields.flatMap((wanted): [string, string][] => {
    const field = header.fields.find(({ name }) => name.toLowerCase() === wanted)
    return field ? [[wanted, field.value]] : []
  })
  const facts: [string, string][] = [
    ['from', from ? writeMailbox(from) : ''],
    ['subject', subject],
    ['envelope', `${sender || 'nobody (a bounce)'} → ${recipients.join(', ')}`],
    ['received', `${at.toISOString()}, ${sizeBytes} bytes`],
    ...thread,
    ...files.map((file): [string, string] => ['file', file]),
    ...(content.note === null ? [] : ([['note', content.note]] as [string, string][])),
  ]
  const lines = facts.map(([name, value]) => `${name.padEnd(11)}  ${inertLine(value)}`)
  return [...lines, '', content.text.trimEnd() || '(no text)'].join('\n')
}

async function showSource(kind: MailKind, id: string, options: OutputOptions): Promise<void> {
  const { stdout } = options.terminal
  await withFoundation(options, async (foundation) => {
    const { stream } = await openOperatorMail(foundation, kind, id)
    if (!options.json) return await pipeline([stream, ...inertAt(stdout), stdout], { end: false })
    const bytes = Buffer.concat(await stream.toArray())
    const encoding = isUtf8(bytes) ? 'utf8' : 'base64'
    print(options, { id, encoding, source: bytes.toString(encoding) }, '')
  })
}

/** Makes the bytes inert for a terminal. Leaves them unchanged for a file or a program. */
function inertAt({ isTTY }: Output): Transform[] {
  if (!isTTY) return []
  const decoder = new StringDecoder('utf8')
  // A CRLF that is cut between two pieces shows as one sign and one line end, which is harmless.
  const transform = (piece: Buffer, _encoding: string, done: (error: null, text: string) => void) =>
    done(null, inertText(decoder.write(piece)))
  return [new Transform({ transform })]
}

function requireId(text: string): string {
  if (!/^[A-Za-z0-9_-]{1,60}$/.test(text))
    throw new InvalidArgumentError('Write an id from the list, or from the reply to a delivery.')
  return text
}
