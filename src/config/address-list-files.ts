// The operator's changes to the lists that validation uses: text files in the data folder, read at the start.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDomain } from '../mail/address.ts'
import type { ListChange, ListChanges } from '../mail/address-lists/address-lists.ts'
import { foldRole } from '../mail/address-lists/roles.ts'
import { quoted, SettingError } from './setting-reader.ts'

/** Reads `address-lists/` in the data folder. A missing file changes nothing. An invalid line stops the start. */
export async function readAddressListFiles(dataDir: string): Promise<ListChanges> {
  const read = (name: string, readName: (text: string) => string | null) =>
    readChange(join(dataDir, 'address-lists', name), readName)
  return {
    disposable: await read('disposable.txt', parseDomain),
    freeProviders: await read('free-providers.txt', parseDomain),
    roles: await read('roles.txt', (text) => foldRole(text) || null),
  }
}

async function readChange(file: string, readName: (text: string) => string | null): Promise<ListChange> {
  const text = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return '' // no changes
    throw new SettingError(`${file} cannot be read (${error.code}): let this user read it, or remove it`)
  })
  const added = new Set<string>()
  const removed = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const entry = line.replace(/#.*/, '').trim()
    if (entry === '') continue
    const name = readName(entry.replace(/^! */, ''))
    if (name === null)
      throw new SettingError(
        `${file}:${index + 1} ${quoted(entry)} is not a name: write one name per line, or !name to remove one`,
      )
    ;(entry.startsWith('!') ? removed : added).add(name)
  }
  return { added, removed }
}
