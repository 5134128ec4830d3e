// Reads a backup's passphrase from a file, the environment or the terminal, never from arguments, which other users see.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { StartRefused } from '../base/errors.ts'
import type { Settings } from '../config/settings.ts'
import { minPassphraseLength } from '../flow/backup/sealed-key.ts'
import type { OutputOptions } from './context.ts'
import type { Terminal } from './terminal.ts'

export interface PassphraseOptions extends OutputOptions {
  passphraseFile?: string
}

const ways = 'use --passphrase-file FILE, or set POSTHORN_BACKUP_PASSPHRASE'

/** The passphrase for sealing a key. A typed passphrase is asked for twice. */
export async function choosePassphrase(options: PassphraseOptions, settings: Settings): Promise<string> {
  const { terminal } = options
  const given = await givenPassphrase(options, settings)
  const passphrase = given ?? (await typePassphrase(terminal, 'Passphrase for the secret key: '))
  if (passphrase === null)
    throw refused('a backup of the secret key needs a passphrase', `${ways}, or use --without-key`)
  if (passphrase.length < minPassphraseLength)
    throw refused(`the passphrase is too short`, `use ${minPassphraseLength} characters or more`)
  if (given === null && (await typePassphrase(terminal, 'Repeat the passphrase: ')) !== passphrase)
    throw refused('the two passphrases differ', 'run the command again')
  return passphrase
}

/** The passphrase that a key was sealed with. */
export async function askPassphrase(options: PassphraseOptions, settings: Settings): Promise<string> {
  const given = await givenPassphrase(options, settings)
  const passphrase = given ?? (await typePassphrase(options.terminal, 'Passphrase of the backup: '))
  if (passphrase === null) throw refused('the secret key of the backup is sealed by a passphrase', ways)
  return passphrase
}

/** Null if neither a file nor the environment contains it. */
export async function givenPassphrase(
  { passphraseFile, terminal }: PassphraseOptions,
  { backupPassphrase }: Settings,
): Promise<string | null> {
  if (!passphraseFile) return backupPassphrase
  const file = resolve(terminal.folder, passphraseFile)
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw refused(`the passphrase cannot be read (${error.message})`, 'name a file that this user can read')
  })
  return text.replace(/\r?\n$/, '')
}

/** Reads a line without showing it. Null if no terminal is attached. */
async function typePassphrase({ stdin, stderr }: Terminal, prompt: string): Promise<string | null> {
  if (!stdin?.isTTY) return null
  // Before the prompt, so that early keystrokes are not shown either.
  stdin.setRawMode(true).setEncoding('utf8')
  stderr.write(prompt)
  let line = ''
  try {
    for (;;) {
      for (const key of await nextKeys(stdin)) {
        if (key === '\r' || key === '\n') return line
        if (key === '\u0003' || key === '\u0004') throw refused('interrupted', 'nothing was changed')
        line = key === '\u007f' || key === '\b' ? [...line].slice(0, -1).join('') : line + key
      }
    }
  } finally {
    stdin.setRawMode(false).pause()
    stderr.write('\n')
  }
}

function nextKeys(stdin: NodeJS.ReadStream): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  stdin.once('data', (text) => resolve(String(text)))
  stdin.resume()
  return promise
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('passphrase', reason, mend)
}
