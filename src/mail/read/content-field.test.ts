// Tests Content-Type and Content-Disposition as mailers write them, and in forms that no mailer should write.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseContentField } from './content-field.ts'

const fields: [field: string, value: string, parameters: Record<string, string>][] = [
  ['text/plain; charset=utf-8', 'text/plain', { charset: 'utf-8' }],
  ['TEXT / Plain (as it is); CHARSET = "UTF-8" (so)', 'text/plain', { charset: 'UTF-8' }],
  ['attachment; filename="a;b\\"c.txt"', 'attachment', { filename: 'a;b"c.txt' }],
  ['text/plain; name=  ', 'text/plain', {}],
  ['text/plain; name= ; name=a.txt', 'text/plain', { name: 'a.txt' }],
  ['text/plain; name=""', 'text/plain', { name: '' }],
  ['attachment; filename*=; filename=a.txt', 'attachment', { filename: 'a.txt' }],
  ['attachment; *=a; **0=b; filename=c', 'attachment', { filename: 'c' }],
  ["attachment; filename*=utf-8''%E2%82%AC.txt; filename=EUR.txt", 'attachment', { filename: '€.txt' }],
  ['a/b; name*2=c; name*0=a; name*1=b', 'a/b', { name: 'abc' }],
  ['a/b; name*0=a; name*1=; name*2=c', 'a/b', { name: 'ac' }],
  ['a/b; name*0=a; name*2=c', 'a/b', { name: 'a' }],
  ['a/b; name*1=b', 'a/b', {}],
  ['; name=a.txt', '', { name: 'a.txt' }],
]

for (const [field, value, parameters] of fields)
  test(`a content field is read: ${field}`, () => {
    const read = parseContentField(field)
    assert.deepEqual([read.value, Object.fromEntries(read.parameters)], [value, parameters])
  })
