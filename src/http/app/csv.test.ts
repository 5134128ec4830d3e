// A spreadsheet shows each value of a record as text and runs none as a formula.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvRecord } from './csv.ts'

const cases: [what: string, values: string[], record: string][] = [
  ['plain values', ['a', 'b c', '1'], '"a","b c","1"\r\n'],
  ['nothing', [''], '""\r\n'],
  ['quotes', ['say "yes"'], '"say ""yes"""\r\n'],
  ['commas and lines', ['a,b', 'c\r\nd'], '"a,b","c\r\nd"\r\n'],
  ['a formula', ['=1+1'], '"\'=1+1"\r\n'],
  ['a formula by plus', ['+1'], '"\'+1"\r\n'],
  ['a formula by minus', ['-1'], '"\'-1"\r\n'],
  ['a formula by at', ['@SUM(A1)'], '"\'@SUM(A1)"\r\n'],
  ['a formula behind white space', [' \t=1'], '"\' \t=1"\r\n'],
  ['a tab', ['\tcmd'], '"\'\tcmd"\r\n'],
  ['a sign that is inside', ['a=b', '2026-11-21'], '"a=b","2026-11-21"\r\n'],
]

for (const [what, values, record] of cases)
  test(`a table is written as CSV: ${what}`, () => {
    assert.equal(csvRecord(values), record)
  })
