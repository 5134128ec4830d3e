// Counts with a singular or plural noun.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted } from './counted.ts'

for (const [written, text] of [
  [counted(0, 'mail'), '0 mails'],
  [counted(1, 'mail'), '1 mail'],
  [counted(2, 'mail'), '2 mails'],
  [counted(1, 'inbox is', 'inboxes are'), '1 inbox is'],
  [counted(3, 'inbox is', 'inboxes are'), '3 inboxes are'],
] as const)
  test(`a count is written with its noun: ${text}`, () => assert.equal(written, text))
