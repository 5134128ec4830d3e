// Exports an inbox as JSON lines, as one mbox file, or as a folder of EML files.

import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import type { Message, Posthorn } from '../posthorn.ts'
import { type Command, inboxOption, UsageError } from './command.ts'

type Write = (client: Posthorn, message: Message, out: WriteStream | string) => Promise<void>

const formats: Record<string, Write> = {
  jsonl: async (_client, message, out) => await put(out as WriteStream, `${JSON.stringify(message)}\n`),
  mbox: async (client, message, out) => {
    const source = Buffer.from(await (await client.messages.source(message.id)).bytes())
    await put(out as WriteStream, mboxEntry(source, new Date(message.createdAt)))
  },
  eml: async (client, message, out) => {
    const source = await (await client.messages.source(message.id)).bytes()
    await writeFile(join(out as string, `${message.id}.eml`), source, { flag: 'wx' })
  },
}

export const exportCommand: Command = {
  words: 'export',
  operands: 'TARGET',
  summary: 'Export an inbox to a file, or with --format eml to a folder',
  options: {
    ...inboxOption,
    format: { type: 'string', help: 'jsonl, mbox or eml. Default: jsonl. Sent mail is only in jsonl' },
  },
  async run(session, given) {
    const format = given.text('format') ?? 'jsonl'
    const write = formats[format]
    if (!write) throw new UsageError('--format must be jsonl, mbox or eml.')
    const target = given.positionals[0]!
    const client = await session.client(Number.POSITIVE_INFINITY)
    const inboxId = await session.inboxId(given.text('inbox'))
    if (format === 'eml') await mkdir(target, { recursive: true })
    const out = format === 'eml' ? target : createWriteStream(target, { flags: 'wx', mode: 0o600 })
    if (typeof out !== 'string') await once(out, 'open')
    const counts = { exported: 0, skipped: 0 }
    for await (const message of client.inboxes.export(inboxId)) {
      // Only received mail has a source.
      const isWritten = format === 'jsonl' || message.direction === 'inbound'
      counts[isWritten ? 'exported' : 'skipped']++
      if (isWritten) await write(client, message, out)
    }
    if (typeof out !== 'string') await finished(out.end())
    await session.print(
      { target, ...counts },
      `${counts.exported} messages exported, ${counts.skipped} sent ones skipped.`,
    )
  },
}

async function put(out: WriteStream, content: string | Buffer): Promise<void> {
  if (!out.write(content)) await once(out, 'drain')
}

/** RFC 4155, in the variant mboxrd: a line of the message that begins like a separator gets one more `>`. */
export function mboxEntry(source: Buffer, date: Date): Buffer {
  const separator = `From MAILER-DAEMON ${date.toUTCString().replace(/^(\w+), (\d+) (\w+) (\d+) ([\d:]+).*/, '$1 $3 $2 $5 $4')}\n`
  const text = source
    .toString('latin1')
    .replaceAll('\r\n', '\n')
    .replace(/^(>*From )/gm, '>$1')
  return Buffer.from(`${separator}${text}${text.endsWith('\n') ? '' : '\n'}\n`, 'latin1')
}
