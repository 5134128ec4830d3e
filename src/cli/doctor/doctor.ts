// `posthorn doctor`: prints one line for each check, with the remedy if something is wrong.
import type { Command } from 'commander'
import { listManagedKeys } from '../../flow/domains/managed-keys.ts'
import { type OutputOptions, type Paint, paintFor, printPainted, withFoundation } from '../context.ts'
import { inertText } from '../inert-text.ts'
import type { Check } from './checks.ts'
import { examineDeliverability } from './deliverability.ts'
import { expectedRecords } from './dns.ts'
import { examine, type Findings } from './examine.ts'

const doctorHelp = `
✓ works, ! works but could be better, ✗ does not work, - does not apply here. The exit status is 1 if there is a ✗.
The command can run at the same time as the service. It creates the DKIM key if there is none, but no data folder and
no database (posthorn migrate creates those). With direct delivery it connects to one mail server of gmail.com, to find
out whether this network lets port 25 out.

--deliverability checks what a receiver sees: public source addresses and their names, the EHLO name, SPF, DKIM and DMARC
of a trial mail of the managed domain and of up to 20 customers' domains (signed and evaluated here, never sent), block
lists, port 25, and the TLS of our own mail server.`

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check the setup and show how to fix problems')
    .option('--deliverability', 'check the chain of outgoing mail instead, with a trial mail of each domain')
    .option('--json', 'print JSON, with the DNS records to publish')
    .addHelpText('after', doctorHelp)
    .action(doctor)
}

async function doctor(options: OutputOptions & { deliverability?: boolean }): Promise<void> {
  const { terminal } = options
  const { checks, managedDomain } = await (options.deliverability ? examineMail(options) : examine(options))
  const isWell = checks.every(({ status }) => status !== 'failed')
  printPainted(
    options,
    { status: isWell ? 'ok' : 'failed', checks, managedDomain },
    checks.map((check) => formatCheck(check, paintFor(terminal))).join('\n'),
  )
  if (!isWell) terminal.exitStatus = 1
}

/** Unlike `examine`, stops with an error if the database or a setting is wrong: `doctor` explains those. */
async function examineMail(options: OutputOptions): Promise<Findings> {
  return await withFoundation(options, async (foundation) => {
    const { db, settings } = foundation
    const managedDomain = expectedRecords(settings, await listManagedKeys(db, settings.managedDomain))
    return { checks: await examineDeliverability(foundation), managedDomain }
  })
}

const signs = {
  ok: ['green', '✓'],
  warning: ['yellow', '!'],
  failed: ['red', '✗'],
  skipped: ['dim', '-'],
} as const

const nameWidth = 16

/** Formats `✓ database          PostgreSQL 18.4, …. Fix: …`, with the remedy on the same line. */
export function formatCheck({ name, status, detail, mend }: Check, paint: Paint): string {
  const [style, sign] = signs[status]
  return `${paint(style, sign)} ${name.padEnd(nameWidth)}  ${inertText(`${detail}${mend ? `. Fix: ${mend}` : ''}`)}`
}
