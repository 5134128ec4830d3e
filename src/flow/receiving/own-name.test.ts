// The EHLO name of our own nodes: valid for an hour or two, and only with the same key and host.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SecretBox } from '../../base/secret-box.ts'
import { isOwnName, ownNameOf } from './own-name.ts'

const box = new SecretBox(Buffer.alloc(32, 1))
const at = new Date('2026-11-21T10:59:00Z')
const later = (hours: number) => new Date(at.getTime() + hours * 3_600_000)

test('a name proves a node for one to two hours, for its key and host', () => {
  const name = ownNameOf(box, 'mx.test', at)
  assert.match(name, /^own-[0-9a-f]{20}\.mx\.test$/)
  assert.ok(isOwnName(box, 'mx.test', name, at) && isOwnName(box, 'mx.test', name, later(1)))
  assert.ok(!isOwnName(box, 'mx.test', name, later(2)) && !isOwnName(box, 'mx.test', name, later(-1)))
  assert.ok(!isOwnName(box, 'mx.other', name, at) && !isOwnName(box, 'mx.test', 'mx.test', at))
  assert.ok(!isOwnName(new SecretBox(Buffer.alloc(32, 2)), 'mx.test', name, at))
})
