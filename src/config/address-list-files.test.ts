// The operator's list files: names to add and to remove, and invalid lines.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readAddressListFiles } from './address-list-files.ts'
import { SettingError } from './setting-reader.ts'

function folderWith(t: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lists-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'address-lists'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'address-lists', name), text)
  return folder
}

test('missing list files change nothing', async (t) => {
  const changes = await readAddressListFiles(join(folderWith(t, {}), 'elsewhere'))
  for (const { added, removed } of Object.values(changes)) assert.equal(added.size + removed.size, 0)
})

test('a file adds names, or removes them after a !, in any spelling', async (t) => {
  const folder = folderWith(t, {
    'disposable.txt': '# ours\r\nThrow.example # since May\r\n\r\n!mailinator.com\r\n',
    'free-providers.txt': 'bücher.example',
    'roles.txt': 'Front-Desk\n! info',
  })
  const { disposable, freeProviders, roles } = await readAddressListFiles(folder)
  assert.deepEqual(
    [disposable, freeProviders, roles].map(({ added, removed }) => [[...added], [...removed]]),
    [
      [['throw.example'], ['mailinator.com']],
      [['xn--bcher-kva.example'], []],
      [['frontdesk'], ['info']],
    ],
  )
})

test('a line that is not a name stops the start, which names the line', async (t) => {
  const folder = folderWith(t, { 'disposable.txt': 'a.example\n*.example\n' })
  await assert.rejects(readAddressListFiles(folder), (error: Error) => {
    assert.ok(error instanceof SettingError)
    assert.match(error.message, /disposable\.txt:2 "\*\.example" is not a name: write one name per line/)
    return true
  })
})
