// The commands and their help.
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addBackupCommands } from './backup.ts'
import { addCertificateCommands } from './certificate.ts'
import { addCompletionCommand } from './completion.ts'
import { addDemoCommand } from './demo/demo.ts'
import { addDkimCommands } from './dkim.ts'
import { addDoctorCommand } from './doctor/doctor.ts'
import { addKeyCommands } from './keys.ts'
import { addNodesCommand } from './nodes.ts'
import { addOperatorCommands } from './operator.ts'
import { addMailCommands } from './operator-mail.ts'
import { addOrganizationCommands } from './organizations.ts'
import { addQueueCommands } from './queues.ts'
import { addSecretCommands } from './secret.ts'
import { addServeCommands } from './serve.ts'
import type { Output, Terminal } from './terminal.ts'

const { version } = packageJson

const intro = 'Inboxes, sending and receiving for programs and agents, in one service.'

const outro = `
Start here:
  posthorn serve            the whole service on this machine, with its own database
  posthorn demo             a guided tour: two inboxes, a message, its reply, webhooks, a bounce
  posthorn doctor           what is set up, what is not, and how to mend it

Settings come from the environment and from .env; docs/settings.md lists them.
Every command takes --json and then prints one JSON document and nothing else. "posthorn completion --help" says how
your shell completes them.
Exit status: 0 done, 1 failed, 2 used wrongly.`

/** All commands. The command that runs receives the terminal in its options. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command('posthorn')
    .description(intro)
    .version(version, '-V, --version', 'the version')
    .addHelpText('after', outro)
    .helpCommand('help [command]', 'the help of a command')
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
  addQueueCommands(program)
  addMailCommands(program)
  addNodesCommand(program)
  addOperatorCommands(program)
  addCertificateCommands(program)
  addDkimCommands(program)
  addSecretCommands(program)
  addBackupCommands(program)
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
  command.showHelpAfterError(`(${words} --help says more)`)
  for (const below of command.commands) nameOwnHelp(below, `${words} ${below.name()}`)
}
