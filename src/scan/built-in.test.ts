// Tests that the development scanner finds the EICAR test file and archive bombs, and that everything else is clean.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { BuiltInScanner } from './built-in.ts'
import { nestedSample } from './samples.ts'

const eicar = Buffer.from(`X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-${'STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'}`)
const bomb = gzipSync(gzipSync(Buffer.alloc(33 << 20)))
let deep: Buffer = Buffer.from('x')
for (let level = 0; level < 20; level++) deep = gzipSync(deep)

const cases: [what: string, content: Buffer, state: string][] = [
  ['nothing', Buffer.alloc(0), 'clean'],
  ['a table', Buffer.from('a,b\n1,2\n'), 'clean'],
  ['a large file', Buffer.alloc(40 << 20, 'x'), 'clean'],
  ['the EICAR test file', eicar, 'infected'],
  ['a text about the EICAR test file', Buffer.from(`It reads ${eicar}`), 'clean'],
  ['the EICAR test file, packed twice', gzipSync(gzipSync(eicar)), 'infected'],
  ['a packed table', gzipSync(Buffer.from('a,b\n1,2\n')), 'clean'],
  ['a damaged archive', gzipSync(Buffer.from('a,b\n')).subarray(0, 15), 'clean'],
  ['an archive that unpacks to 33 MiB', bomb, 'failed'],
  ['archives in archives', deep, 'failed'],
  ['ZIP archives in ZIP archives', nestedSample, 'failed'],
  ['an archive of 33 MiB', Buffer.concat([gzipSync('x'), Buffer.alloc(33 << 20)]), 'failed'],
]

for (const [what, content, state] of cases)
  test(`the built-in scanner calls ${what} ${state}`, async () => {
    const pieces = () => [content.subarray(0, 5), content.subarray(5)]
    assert.equal((await new BuiltInScanner().scan(pieces)).state, state)
  })
