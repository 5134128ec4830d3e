// `posthorn doctor`: prints one line for each check, with the remedy if something is wrong.
import type { Command } from 'commander'
import { type OutputOptions, type Paint, paintFor, printPainted } from '../context.ts'
import { inertText } from '../inert-text.ts'
import type { Check } from './checks.ts'
import { examine } from './examine.ts'

const doctorHelp = `
✓ works, ! works but could be better, ✗ does not work, - has nothing to check here. Exit status 1 when there is a ✗.
It may run beside the service. It makes neither data folder nor database (posthorn migrate does), but the DKIM key.
With direct delivery it connects to one mail server of gmail.com, to see whether this network lets port 25 out.`

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('what is set up, what is not, and how to mend it')
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

/** Formats `✓ database          PostgreSQL 18.4, …`, with the remedy on the same line. */
export function formatCheck({ name, status, detail, mend }: Check, paint: Paint): string {
  const [style, sign] = signs[status]
  return `${paint(style, sign)} ${name.padEnd(nameWidth)}  ${inertText(`${detail}${mend ? `. Mend: ${mend}` : ''}`)}`
}
