// Commands of mail: send, threads, read, reply, wait, tail.
import { fileAttachment } from '../node.ts'
import type { Message, WaitOptions } from '../posthorn.ts'
import { type Arguments, type Command, inboxOption, type Option, UsageError } from './command.ts'
import { readInput } from './session.ts'
import { inertLine, inertText, table } from './terminal.ts'

const contentOptions: Record<string, Option> = {
  text: { type: 'string', help: 'the text. Default: standard input' },
  attach: { type: 'string', multiple: true, help: 'a file to attach' },
  key: { type: 'string', help: 'the idempotency key. Default: a new one' },
}
const waitOptions: Record<string, Option> = {
  ...inboxOption,
  after: {
    type: 'string',
    help: 'only mail after this message; 0: from the beginning. Default: from now on',
  },
  from: { type: 'string', help: 'only mail from this address' },
}

export const mailCommands: Command[] = [
  {
    words: 'send',
    operands: '',
    summary: 'Send a message from an inbox',
    options: {
      ...inboxOption,
      to: { type: 'string', multiple: true, help: 'a recipient' },
      cc: { type: 'string', multiple: true, help: 'a recipient of a copy' },
      subject: { type: 'string', help: 'the subject' },
      ...contentOptions,
    },
    async run(session, given) {
      const [to, cc] = [given.texts('to'), given.texts('cc')]
      const subject = given.text('subject')
      if (to.length === 0 || subject === null) throw new UsageError('ph send needs --to and --subject.')
      const inbox = (await session.client()).inbox(await session.inboxId(given.text('inbox')))
      const body = {
        to: to.map((email) => ({ email })),
        ...(cc.length > 0 && { cc: cc.map((email) => ({ email })) }),
        subject,
        ...(await readContent(given)),
      }
      const sent = await inbox.messages.send(body, keyOf(given))
      await session.print(sent, sent.message.id)
    },
  },
  {
    words: 'reply',
    operands: 'MESSAGE',
    summary: 'Reply to a message',
    options: { all: { type: 'boolean', help: 'to all recipients' }, ...contentOptions },
    async run(session, given) {
      const client = await session.client()
      const message = await client.messages.get(given.positionals[0]!)
      const body = { replyAll: given.isSet('all'), ...(await readContent(given)) }
      const sent = await client.thread(message).reply(body, keyOf(given))
      await session.print(sent, sent.message.id)
    },
  },
  {
    words: 'threads',
    operands: '',
    summary: 'List the threads of an inbox, by newest message',
    options: inboxOption,
    async run(session, given) {
      const client = await session.client()
      for await (const thread of client.threads.list(await session.inboxId(given.text('inbox')))) {
        const { id, lastMessageAt, messageCount, subject } = thread
        await session.print(thread, table([[id, lastMessageAt, String(messageCount), subject]]))
      }
    },
  },
  {
    words: 'read',
    operands: 'MESSAGE-OR-THREAD',
    summary: 'Print a message, or all messages of a thread',
    async run(session, { positionals: [id] }) {
      const client = await session.client()
      if (!id!.startsWith('thr_')) {
        const message = await client.messages.get(id!)
        return await session.print(message, writeMessage(message))
      }
      for await (const message of client.threads.messages(id!))
        await session.print(message, writeMessage(message))
    },
  },
  {
    words: 'wait',
    operands: '',
    summary: 'Wait for a message and print it',
    options: { ...waitOptions, timeout: { type: 'string', help: 'seconds. Default: 60' } },
    async run(session, given) {
      const inbox = (await session.client()).inbox(await session.inboxId(given.text('inbox')))
      const seconds = Number(given.text('timeout') ?? 60)
      if (!(seconds >= 0)) throw new UsageError('--timeout must be a number of seconds.')
      const message = await inbox.messages.wait({
        ...waitFor(given, session.signal),
        timeoutMs: seconds * 1_000,
      })
      await session.print(message, writeMessage(message))
    },
  },
  {
    words: 'tail',
    operands: '',
    summary: 'Print messages as they come, until it is interrupted',
    options: waitOptions,
    async run(session, given) {
      const inbox = (await session.client()).inbox(await session.inboxId(given.text('inbox')))
      for await (const message of inbox.messages.watch(waitFor(given, session.signal))) {
        const { id, createdAt, from, subject } = message
        await session.print(message, table([[id, createdAt, from.email, subject]]))
      }
    },
  },
]

function keyOf(given: Arguments): { idempotencyKey?: string } {
  const idempotencyKey = given.text('key')
  return idempotencyKey === null ? {} : { idempotencyKey }
}

async function readContent(given: Arguments) {
  const attachments = await Promise.all(given.texts('attach').map((path) => fileAttachment(path)))
  const text = given.text('text') ?? (await readInput())
  return attachments.length > 0 ? { text, attachments } : { text }
}

function waitFor(given: Arguments, signal: AbortSignal): WaitOptions {
  const from = given.text('from')?.toLowerCase()
  const match = (message: Message) => from === undefined || message.from.email.toLowerCase() === from
  return { after: given.text('after') ?? 'now', match, signal }
}

function writeMessage(message: Message): string {
  const { id, from, to, subject, createdAt, attachments = [] } = message
  const head = [
    ['Message', id],
    ['From', from.name === undefined ? from.email : `${from.name} <${from.email}>`],
    ['To', to.map(({ email }) => email).join(', ')],
    ['Date', createdAt],
    ['Subject', subject],
    ...attachments.map(({ id, filename, size, scanState }) => [
      'File',
      `${id} ${filename} (${size} bytes, ${scanState})`,
    ]),
  ]
  const lines = head.map(([name, value]) => `${name}: ${inertLine(value!)}`)
  return `${lines.join('\n')}\n\n${inertText(message.text)}`
}
