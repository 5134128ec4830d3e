// Why a source sends nothing now: the providers of a domain's servers, and the warm-up.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stopOf, type TracedSource } from './trace-sources.ts'

const at = new Date()
const later = new Date(at.getTime() + 60_000)

function sourceWith(reasons: Record<string, string>): TracedSource {
  const limits = Object.entries(reasons).map(([provider, reason]) => {
    const name = `${provider} from 192.0.2.5`
    return { name, connections: 1, perMinute: null, perHour: null, pausedUntil: later, reason }
  })
  return { address: '192.0.2.5', ehlo: 'mx.example', warmUp: null, limits }
}

test('sources: one that rests at a provider may send to the domain’s servers at another one', () => {
  const rest = sourceWith({ google: 'blocked: 554 5.7.1' })
  assert.match(
    stopOf(rest, ['google'], at)!,
    /^google from 192\.0\.2\.5 waits until .*: blocked: 554 5\.7\.1$/,
  )
  assert.equal(stopOf(rest, ['google', 'backup.test'], at), null)
  assert.match(stopOf(sourceWith({ google: '421 4.7.0' }), ['google', 'backup.test'], at)!, /: 421 4\.7\.0$/)
  assert.equal(stopOf(sourceWith({}), ['google'], at), null)
  const full = { ...sourceWith({}), warmUp: { sent: 50, perDay: 50 } }
  assert.match(stopOf(full, ['google'], at)!, /has sent the 50 messages that its warm-up allows/)
})
