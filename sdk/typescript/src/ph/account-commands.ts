// Commands of the account: log in, inboxes, domains.
import { Posthorn } from '../posthorn.ts'
import { type Command, UsageError } from './command.ts'
import { profilePath, readProfile, writeProfile } from './profile.ts'
import { readInput } from './session.ts'
import { inertText, table } from './terminal.ts'

export const accountCommands: Command[] = [
  {
    words: 'login',
    operands: 'URL',
    summary: 'Store the address of a service, and a key that is read from standard input',
    async run(session, { positionals: [baseUrl] }) {
      const apiKey = (process.stdin.isTTY ? await readSecret('API key: ') : await readInput()).trim()
      const { organization, apiKey: key } = await new Posthorn({ baseUrl: baseUrl!, apiKey }).profile()
      await writeProfile({ baseUrl: baseUrl!, apiKey })
      await session.print({ organization, apiKey: key }, `Logged in. The key is stored in ${profilePath()}.`)
    },
  },
  {
    words: 'inbox',
    operands: '',
    summary: 'List inboxes, newest first',
    async run(session) {
      const client = await session.client()
      for await (const inbox of client.inboxes.list())
        await session.print(inbox, table([[inbox.id, inbox.address, inbox.displayName]]))
    },
  },
  {
    words: 'inbox create',
    operands: '[LOCAL-PART]',
    summary: 'Create an inbox',
    options: {
      name: { type: 'string', help: 'the display name' },
      domain: { type: 'string', help: 'a verified domain of yours. Default: the managed domain' },
    },
    async run(session, { positionals: [localPart], text }) {
      const client = await session.client()
      const [displayName, domain] = [text('name'), text('domain')]
      const inbox = await client.inboxes.create({
        ...(localPart !== undefined && { localPart }),
        ...(displayName !== null && { displayName }),
        ...(domain !== null && { domainId: await findDomain(client, domain) }),
      })
      await session.print(inbox, table([[inbox.id, inbox.address]]))
    },
  },
  {
    words: 'inbox use',
    operands: 'INBOX',
    summary: 'Choose the inbox of commands without --inbox',
    async run(session, { positionals: [given] }) {
      const client = await session.client()
      const inbox = await client.inboxes.get(await session.inboxId(given!))
      await writeProfile({ ...(await readProfile()), inbox: inbox.id })
      await session.print(inbox, inbox.address)
    },
  },
  {
    words: 'inbox delete',
    operands: 'INBOX',
    summary: 'Delete an inbox and its mail',
    async run(session, { positionals: [given] }) {
      await (await session.client()).inboxes.delete(await session.inboxId(given!))
    },
  },
  {
    words: 'domains',
    operands: '',
    summary: 'List domains',
    async run(session) {
      const client = await session.client()
      for await (const domain of client.domains.list())
        await session.print(domain, table([[domain.id, domain.domain]]))
    },
  },
  {
    words: 'domains add',
    operands: 'DOMAIN',
    summary: 'Register a domain and print the DNS records to publish',
    async run(session, { positionals: [name] }) {
      const client = await session.client()
      const domain = await client.domains.create({ domain: name! })
      await session.print(domain, inertText(await client.domains.zone(domain.id)))
    },
  },
  {
    words: 'domains verify',
    operands: 'DOMAIN',
    summary: 'Look up the DNS records of a domain now',
    async run(session, { positionals: [name] }) {
      const client = await session.client()
      const check = await client.domains.verify(await findDomain(client, name!))
      const rows = check.checks.map(({ purpose, status, type, name }) => [status, purpose, type, name])
      await session.print(check, table(rows))
    },
  },
  {
    words: 'domains delete',
    operands: 'DOMAIN',
    summary: 'Delete a domain',
    async run(session, { positionals: [name] }) {
      const client = await session.client()
      await client.domains.delete(await findDomain(client, name!))
    },
  },
]

/** Returns the id of a domain, which may be given by its name. */
async function findDomain(client: Posthorn, given: string): Promise<string> {
  if (!given.includes('.')) return given
  for await (const { id, domain } of client.domains.list()) if (domain === given.toLowerCase()) return id
  throw new UsageError(`There is no domain ${given}.`)
}

/** Reads a line that the terminal does not show. */
async function readSecret(prompt: string): Promise<string> {
  process.stderr.write(prompt)
  process.stdin.setRawMode(true)
  let secret = ''
  try {
    for await (const piece of process.stdin)
      for (const letter of (piece as Buffer).toString()) {
        if (letter === '\x03') throw new UsageError('Cancelled.')
        if (letter === '\r' || letter === '\n') return secret
        secret = letter === '\x7f' ? secret.slice(0, -1) : secret + letter
      }
    return secret
  } finally {
    process.stdin.setRawMode(false)
    process.stderr.write('\n')
  }
}
