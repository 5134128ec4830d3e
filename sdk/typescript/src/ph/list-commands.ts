// Commands over lists of addresses: validate a file, and suppressions.
import { readFile, stat } from 'node:fs/promises'
import { type Command, UsageError } from './command.ts'
import { type AddressFile, readAddresses, writeCell } from './csv.ts'
import { inertLine, Progress, table } from './terminal.ts'

const maxFileBytes = 256 * 2 ** 20
const addressesAtOnce = 100
const requestsAtOnce = 4

async function readFileOf(path: string): Promise<AddressFile> {
  const { size } = await stat(path)
  if (size > maxFileBytes) throw new UsageError(`${path} is larger than 256 MiB.`)
  const file = readAddresses(await readFile(path, 'utf8'))
  if (file.addresses.length === 0) throw new UsageError(`${path} has no addresses.`)
  return file
}

export const listCommands: Command[] = [
  {
    words: 'validate',
    operands: 'FILE.csv',
    summary: 'Check the addresses of a file without sending mail, and print a verdict for each as CSV',
    async run(session, { positionals: [path] }) {
      const { addresses } = await readFileOf(path!)
      const client = await session.client(Number.POSITIVE_INFINITY)
      const progress = new Progress(addresses.length)
      if (!session.isJson) await session.write('email,verdict,reason')
      for (let start = 0; start < addresses.length; start += addressesAtOnce) {
        const emails = addresses.slice(start, start + addressesAtOnce)
        const { results } = await client.validateBulk({ emails }, { signal: session.signal })
        for (const [index, result] of results.entries()) {
          const cells = [inertLine(emails[index]!), result.verdict, result.reason]
          await session.print(result, cells.map(writeCell).join(','))
        }
        progress.add(emails.length)
      }
    },
  },
  {
    words: 'suppressions',
    operands: '',
    summary: 'List suppressed addresses, newest first',
    async run(session) {
      const client = await session.client()
      for await (const one of client.suppressions.list())
        await session.print(one, table([[one.email, one.reason, one.createdAt]]))
    },
  },
  {
    words: 'suppressions import',
    operands: 'FILE.csv',
    summary:
      'Suppress the addresses of a file: of Postmark, SendGrid, Mailgun or SES, or any with a column of addresses',
    async run(session, { positionals: [path] }) {
      const { format, addresses } = await readFileOf(path!)
      const client = await session.client(Number.POSITIVE_INFINITY)
      session.note(`${path} has ${addresses.length} addresses in the format of ${format}.`)
      const progress = new Progress(addresses.length)
      const refused: { email: string; message: string }[] = []
      const rest = addresses.values()
      const work = async () => {
        for (const email of rest) {
          await client.suppressions.create({ email }, { signal: session.signal }).catch((error) => {
            if (error.status !== 400) throw error
            refused.push({ email, message: error.message })
          })
          progress.add(1)
        }
      }
      await Promise.all(Array.from({ length: requestsAtOnce }, work))
      for (const { email, message } of refused) session.note(table([[email, message]]))
      const suppressed = addresses.length - refused.length
      await session.print(
        { format, suppressed, refused },
        `${suppressed} addresses are suppressed, ${refused.length} are no addresses.`,
      )
    },
  },
  {
    words: 'suppressions add',
    operands: 'ADDRESS',
    summary: 'Suppress an address',
    async run(session, { positionals: [email] }) {
      const one = await (await session.client()).suppressions.create({ email: email! })
      await session.print(one, table([[one.email, one.reason]]))
    },
  },
  {
    words: 'suppressions delete',
    operands: 'ADDRESS',
    summary: 'Let an address get mail again',
    async run(session, { positionals: [email] }) {
      await (await session.client()).suppressions.delete({ email: email! })
    },
  },
]
