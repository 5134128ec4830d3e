// `posthorn certificate …`: shows, exports and revokes certificates ordered by ACME, and retries refused orders.
import { X509Certificate } from 'node:crypto'
import type { Command } from 'commander'
import { counted } from '../base/counted.ts'
import { ServiceError } from '../base/errors.ts'
import { renewalOf } from '../flow/certificates/decide-order.ts'
import { exportStored, retryOrders, revokeStored } from '../flow/certificates/revoke-certificate.ts'
import type { Foundation } from '../foundation.ts'
import { type AcmeAccountRow, findAcmeAccount } from '../store/domains/certificates.ts'
import { type OutputOptions, print, withFoundation } from './context.ts'

const certificateHelp = `
If POSTHORN_ACME is set, a node with the role jobs orders the certificate, and renews it when a third of its lifetime is
left. All nodes use the same certificate, for SMTP and HTTPS.`

export function addCertificateCommands(program: Command): void {
  const certificate = program
    .command('certificate')
    .description('show, export, order and revoke the ACME certificate')
    .addHelpText('after', certificateHelp)
  certificate
    .command('show')
    .description('show its names, dates and refused orders')
    .option('--json', 'print JSON')
    .action(show)
  certificate
    .command('export')
    .description('print it with its chain and private key, for the TLS of a balancer')
    .option('--json', 'print JSON')
    .action(exportPem)
  certificate
    .command('retry')
    .description('order missing names now, without waiting for the next attempt')
    .option('--json', 'print JSON')
    .action(retry)
  certificate
    .command('revoke')
    .description('revoke it, for example after its key was stolen, and order another at once')
    .option('--json', 'print JSON')
    .action(revoke)
}

/** Runs `work` with the configured authority. */
async function withAuthority<Result>(
  options: OutputOptions,
  work: (foundation: Foundation, directory: string) => Promise<Result>,
): Promise<Result> {
  return await withFoundation(options, (foundation) => {
    const { acme } = foundation.settings
    if (!acme)
      throw new ServiceError(
        'not_found',
        'POSTHORN_ACME is not set, so there is no ACME certificate: set it to your mail address',
      )
    return work(foundation, acme.directory)
  })
}

async function show(options: OutputOptions): Promise<void> {
  const found = await withAuthority(options, async ({ db }, directory) =>
    view(await findAcmeAccount(db, directory), directory),
  )
  const { certificate, failures, fault, retryAt, refusals } = found
  const lines = certificate
    ? [
        `names     ${certificate.names.join(', ')}`,
        `serial    ${certificate.serial}, issued by ${certificate.issuer}`,
        `expires   ${certificate.expiresAt}, renewal from ${certificate.renewalAt}`,
      ]
    : ['No certificate has been issued yet.']
  if (failures > 0)
    lines.push(`failed    ${counted(failures, 'time')}, next attempt ${retryAt}${fault ? `: ${fault}` : ''}`)
  for (const { name, reason, retryAt } of refusals)
    lines.push(`refused   ${name}, next attempt ${retryAt}: ${reason}`)
  print(options, found, lines.join('\n'))
}

function view(account: AcmeAccountRow | null, directory: string) {
  const { certificate = null, failures = 0, fault = null, retryAt = null, refusals = [] } = account ?? {}
  return {
    directory,
    certificate: certificate && {
      ...describe(certificate.chain),
      names: certificate.names,
      issuedAt: certificate.issuedAt.toISOString(),
      expiresAt: certificate.expiresAt.toISOString(),
      renewalAt: renewalOf(certificate).toISOString(),
    },
    failures,
    fault,
    retryAt: retryAt?.toISOString() ?? null,
    refusals,
  }
}

function describe(chain: string): { serial: string; issuer: string } {
  const { serialNumber, issuer } = new X509Certificate(chain)
  return { serial: serialNumber, issuer: issuer.replaceAll('\n', ', ') }
}

async function exportPem(options: OutputOptions): Promise<void> {
  const pem = await withAuthority(options, (foundation, directory) => exportStored(foundation, directory))
  print(options, { pem }, pem.trimEnd())
}

async function retry(options: OutputOptions): Promise<void> {
  await withAuthority(options, (foundation, directory) => retryOrders(foundation, directory))
  print(options, { retried: true }, 'A running service orders the missing names within seconds.')
}

async function revoke(options: OutputOptions): Promise<void> {
  const { chain, names } = await withAuthority(options, (foundation, directory) =>
    revokeStored(foundation, directory),
  )
  const { serial } = describe(chain)
  const text = `${serial} (${names.join(', ')}) is revoked. A running service orders another certificate within seconds.`
  print(options, { revoked: serial, names }, text)
}
