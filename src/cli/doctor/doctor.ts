// `posthorn doctor`: prints one line for each check, with the remedy if something is wrong.
import type { Command } from 'commander'
import { type OutputOptions, type Paint, paintFor, printPainted } from '../context.ts'
import { inertText } from '../inert-text.ts'
import type { Check } from './checks.ts'
import { examine } from './examine.ts'

const doctorHelp = `
✓ works, ! works but could be better, ✗ does not work, - does not apply here. The exit status is 1 if there is a ✗.
The command can run at the same time as the service. It creates the DKIM key if there is none, but no data folder and
no database (posthorn migrate creates those). With direct delivery it connects to one mail server of gmail.com, to find
out whether this network lets port 25 out.`

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check the setup and show how to fix problems')
    .option('--json', 'print JSON, with the DNS records to publish')
    .addHelpText('after', doctorHelp)
    .action(doctor)
}

async function doctor(options: OutputOptions): Promise<void> {
  const { terminal } = options
  const { checks, managedDomain } = await examine(options)
  const isWell = checks.every(({ status }) => status !== 'failed')
  printPainted(
    options,
    { status: isWell ? 'ok' : 'failed', checks, managedDomain },
    checks.map((check) => formatCheck(check, paintFor(terminal))).join('\n'),
  )
  if (!isWell) terminal.exitStatus = 1
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
