// The passphrase of a backup: from a file, the environment or the terminal, and never from the arguments, which others see.
import { readFile } from 'node:fs/promises'
import { StartRefused } from '../base/errors.ts'
import type { Settings } from '../config/settings.ts'
import { minPassphraseLength } from '../flow/backup/sealed-key.ts'

export interface PassphraseOptions {
  passphraseFile?: string
}

const ways = 'write --passphrase-file FILE, or set POSTHORN_BACKUP_PASSPHRASE'

/** The passphrase that a key is sealed with; asked twice where it is typed. */
export async function choosePassphrase(options: PassphraseOptions, settings: Settings): Promise<string> {
  const given = await givenPassphrase(options, settings)
  const passphrase = given ?? (await typePassphrase('Passphrase for the secret key: '))
  if (passphrase === null) throw refused('the secret key needs a passphrase', `${ways}, or --without-key`)
  if (passphrase.length < minPassphraseLength)
    throw refused(`the passphrase is too short`, `choose one of ${minPassphraseLength} characters or more`)
  if (given === null && (await typePassphrase('Once more: ')) !== passphrase)
    throw refused('the two passphrases differ', 'begin again')
  return passphrase
}

/** The passphrase that a key was sealed with. */
export async function askPassphrase(options: PassphraseOptions, settings: Settings): Promise<string> {
  const passphrase =
    (await givenPassphrase(options, settings)) ?? (await typePassphrase('Passphrase of the backup: '))
  if (passphrase === null) throw refused('the secret key of the backup is sealed by a passphrase', ways)
  return passphrase
}

/** Null where neither a file nor the environment has it. */
export async function givenPassphrase(
  { passphraseFile }: PassphraseOptions,
  { backupPassphrase }: Settings,
): Promise<string | null> {
  if (!passphraseFile) return backupPassphrase
  const text = await readFile(passphraseFile, 'utf8').catch((error: Error) => {
    throw refused(`the passphrase cannot be read (${error.message})`, 'let this user read the file')
  })
  return text.replace(/\r?\n$/, '')
}

/** A line that is typed and not shown; null where nobody is at a terminal. */
async function typePassphrase(prompt: string): Promise<string | null> {
  const { stdin, stderr } = process
  if (!stdin.isTTY) return null
  // Before it is asked for: whoever types at once is not shown either.
  stdin.setRawMode(true).setEncoding('utf8')
  stderr.write(prompt)
  let line = ''
  try {
    for (;;) {
      for (const key of await nextKeys()) {
        if (key === '\r' || key === '\n') return line
        if (key === '\u0003' || key === '\u0004') throw refused('broken off', 'nothing was done')
        line = key === '\u007f' || key === '\b' ? [...line].slice(0, -1).join('') : line + key
      }
    }
  } finally {
    stdin.setRawMode(false).pause()
    stderr.write('\n')
  }
}

function nextKeys(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  process.stdin.once('data', (text) => resolve(String(text)))
  process.stdin.resume()
  return promise
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('passphrase', reason, mend)
}
