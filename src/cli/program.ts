// The commands and their help.
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addBackupCommands } from './backup.ts'
import { addBlobCommands } from './blobs.ts'
import { addCertificateCommands } from './certificate.ts'
import { addCompletionCommand } from './completion.ts'
import { addDemoCommand } from './demo/demo.ts'
import { addDkimCommands } from './dkim.ts'
import { addDoctorCommand } from './doctor/doctor.ts'
import { addDomainCommands } from './domains.ts'
import { addKeyCommands } from './keys.ts'
import { addMcpCommand } from './mcp.ts'
import { addNodesCommand } from './nodes.ts'
import { addOperatorCommands } from './operator.ts'
import { addMailCommands } from './operator-mail.ts'
import { addOrganizationCommands } from './organizations.ts'
import { addQueueCommands } from './queues.ts'
import { addSecretCommands } from './secret.ts'
import { addServeCommands } from './serve.ts'
import type { Output, Terminal } from './terminal.ts'

const { version } = packageJson

const intro = 'Self-hosted mail for programs and agents: inboxes, sending, receiving and threads.'

const outro = `
Start here:
  posthorn serve            run the whole service on this machine, with its own database
  posthorn demo             take a guided tour: two inboxes, a message, its reply, webhooks, a bounce
  posthorn doctor           check the setup and show how to fix problems

Settings are environment variables, or lines of .env in the current folder. docs/settings.md lists them.
Every command accepts --json and then prints one JSON document and nothing else.
"posthorn completion --help" explains how to complete commands in your shell.
Exit status: 0 success, 1 failure, 2 wrong usage.`

/** All commands. The command that runs receives the terminal in its options. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command('posthorn')
    .description(intro)
    .version(version, '-V, --version', 'print the version')
    .addHelpText('after', outro)
    .helpCommand('help [command]', 'show the help of a command')
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false })
    // An option after a command belongs to that command, even if the parent command has an option of the same name.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
      getOutHelpWidth: () => widthOf(terminal.stdout),
      getErrHelpWidth: () => widthOf(terminal.stderr),
    })
    .hook('preAction', (_, command) => void command.setOptionValue('terminal', terminal))
  addServeCommands(program)
  addDemoCommand(program)
  addDoctorCommand(program)
  addOrganizationCommands(program)
  addKeyCommands(program)
  addDomainCommands(program)
  addQueueCommands(program)
  addMailCommands(program)
  addMcpCommand(program)
  addNodesCommand(program)
  addOperatorCommands(program)
  addCertificateCommands(program)
  addDkimCommands(program)
  addSecretCommands(program)
  addBackupCommands(program)
  addBlobCommands(program)
  addCompletionCommand(program)
  nameOwnHelp(program, 'posthorn')
  return program
}

/** The width of help texts: that of the terminal, else 80 columns. */
function widthOf({ isTTY, columns }: Output): number {
  return (isTTY ? columns : undefined) ?? 80
}

/** After wrong use, points to the help of the same command. */
function nameOwnHelp(command: Command, words: string): void {
  command.showHelpAfterError(`(see ${words} --help)`)
  for (const below of command.commands) nameOwnHelp(below, `${words} ${below.name()}`)
}
