// `posthorn domain …`: settings of customers' domains.
import { Argument, type Command } from 'commander'
import { switchOneClick } from '../flow/domains/change-one-click.ts'
import { parseDomain } from '../mail/address.ts'
import { trimDomain } from '../mail/domain-name.ts'
import { type OutputOptions, print, withFoundation } from './context.ts'

const oneClickHelp = `
With "on", mail that a program sends through the domain to one recipient has a link to unsubscribe (List-Unsubscribe,
RFC 8058). A click suppresses the recipient for the domain's organization. It needs POSTHORN_PUBLIC_URL with https. Mail
from inboxes, and mail that several recipients share, never has the link.`

export function addDomainCommands(program: Command): void {
  const domain = program.command('domain').description("settings of customers' domains")
  domain
    .command('one-click')
    .argument('<domain>', 'a domain that an organization has proved')
    .addArgument(new Argument('<state>', 'whether its mail has the link').choices(['on', 'off']))
    .description('give mail of a domain a one-click link to unsubscribe')
    .addHelpText('after', oneClickHelp)
    .option('--json', 'print JSON')
    .action(oneClick)
}

async function oneClick(given: string, state: 'on' | 'off', options: OutputOptions): Promise<void> {
  const domain = parseDomain(trimDomain(given)) ?? given.toLowerCase()
  await withFoundation(options, (foundation) => switchOneClick(foundation, domain, state))
  print(options, { domain, oneClick: state }, `${domain}: one-click link ${state}`)
}
