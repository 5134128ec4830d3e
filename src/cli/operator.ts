// `posthorn operator …`: links to the operator's desk.
import type { Command } from 'commander'
import { ServiceError } from '../base/errors.ts'
import { formatAddress, reachable } from '../config/setting-values.ts'
import { createDeskLink } from '../flow/people/operator-access.ts'
import type { Foundation } from '../foundation.ts'
import { listNodes } from '../store/nodes.ts'
import { type OutputOptions, print, withFoundation } from './context.ts'

const linkHelp = `
The desk is on the operator listener (POSTHORN_OPERATOR), which only this machine can reach by default. From another
machine, forward the port (ssh -L 8026:127.0.0.1:8026 HOST), and open the link there.`

export function addOperatorCommands(program: Command): void {
  const operator = program.command('operator').description('open the operator’s desk in a browser')
  operator
    .command('link')
    .description('print a link that opens the desk once, within 15 minutes')
    .addHelpText('after', linkHelp)
    .option('--json', 'print JSON')
    .action(link)
}

async function link(options: OutputOptions): Promise<void> {
  await withFoundation(options, async (foundation) => {
    const address = await findListener(foundation)
    const { token, expiresAt } = await createDeskLink(foundation)
    const url = `http://${address}/#${token}`
    print(
      options,
      { url, expiresAt },
      `${url}\n\nThe link opens the desk once, until ${expiresAt.toISOString()}.`,
    )
  })
}

/** The desk's address: the configured one, or that of a living node if the port is chosen at each start. */
async function findListener({ settings, db }: Foundation): Promise<string> {
  const { operator } = settings
  const nodes = operator.port > 0 ? [] : await listNodes(db)
  const living = nodes.flatMap(({ isAlive, operator: address }) => (isAlive && address ? [address] : []))
  const candidates = operator.port > 0 ? [formatAddress(reachable(operator))] : living.map(onThisMachine)
  for (const address of candidates) if (await isPosthorn(address)) return address
  const where = candidates.length > 0 ? candidates.join(', ') : formatAddress(operator)
  throw new ServiceError(
    'unavailable',
    `no service listens at ${where}: start it with posthorn serve, or run this command on its machine`,
  )
}

function onThisMachine(address: string): string {
  return address.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')
}

const answerLimitMs = 2_000

async function isPosthorn(address: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://${address}/healthz`, { signal: AbortSignal.timeout(answerLimitMs) })
    return ((await answer.json()) as { status?: string }).status === 'alive'
  } catch {
    // No answer, or another program.
    return false
  }
}
