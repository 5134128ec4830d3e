// Tests the ledger itself: it reports each kind of broken promise, and passes kept ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inboundKey, type Kill, reconcile } from './ledger.ts'

const promised = { submissionId: 's', messageId: 'msg_1', internetMessageId: '<1@x>' }
const copy = (atMs: number, recipient = 'a@far.test') => ({ messageId: '<1@x>', recipient, atMs })
const kill: Kill = { victim: 'service', fromMs: 10_000, settledMs: 10_100 }

/** A campaign of one send and one mail without faults, with the given changes. */
function campaign(change: {
  copies?: ReturnType<typeof copy>[]
  kills?: Kill[]
  state?: string
  times?: number
  outcome?: 'acknowledged' | 'unknown' | 'not_taken'
  replayed?: { promised: typeof promised; replayed: boolean } | null
}) {
  const mail = { messageId: '<2@y>', address: 'i@own.test', outcome: change.outcome ?? 'acknowledged' }
  return reconcile(
    {
      sends: [{ key: 'k', path: '/', body: {}, recipients: ['a@far.test'], promised }],
      arrivals: [mail],
      kills: change.kills ?? [kill],
      found: {
        replays: new Map([
          ['k', change.replayed === undefined ? { promised, replayed: true } : change.replayed],
        ]),
        states: new Map([['s', [change.state ?? 'delivered']]]),
        stored: new Map([[inboundKey('<2@y>', 'i@own.test'), change.times ?? 1]]),
        outbound: new Map([['msg_1', 1]]),
        copies: change.copies ?? [copy(9000)],
      },
    },
    'own.test',
  )
}

const cases: [name: string, change: Parameters<typeof campaign>[0], wrong: RegExp | null][] = [
  ['a faultless campaign passes', {}, null],
  ['a second copy after a kill is excused', { copies: [copy(9000), copy(12_000)] }, null],
  ['bytes on their way during a kill are excused', { copies: [copy(10_050), copy(12_000)] }, null],
  [
    'a second copy without a kill in between is reported',
    { copies: [copy(11_000), copy(12_000)] },
    /2 copies, 0 of them/,
  ],
  ['a second copy before the kill is reported', { copies: [copy(8000), copy(9000)] }, /2 copies, 0 of them/],
  [
    'a second copy is reported if its first had 2 s to be recorded',
    { copies: [copy(7900), copy(12_000)] },
    /2 copies, 0/,
  ],
  ['one kill excuses one copy', { copies: [copy(9000), copy(12_000), copy(13_000)] }, /3 copies, 1 of them/],
  ['a missing copy is reported', { copies: [] }, /nothing of <1@x> reached a@far.test/],
  ['a mail that nobody sent is reported', { copies: [copy(9000), copy(9000, 'b@far.test')] }, /nobody sent/],
  ['a recipient without an end is reported', { state: 'pending' }, /ended as \[pending\]/],
  ['a lost 250 is reported', { times: 0 }, /acknowledged: stored 0 times/],
  ['a 250 that is stored twice is reported', { times: 2 }, /acknowledged: stored 2 times/],
  ['a mail whose reply was lost may be stored', { outcome: 'unknown' }, null],
  ['a mail whose reply was lost may be missing', { outcome: 'unknown', times: 0 }, null],
  ['a refused mail that is stored is reported', { outcome: 'not_taken' }, /not_taken: stored 1 times/],
  ['a refused replay is reported', { replayed: null }, /not answered with 202/],
  ['a forgotten 202 is reported', { replayed: { promised, replayed: false } }, /forgotten/],
  [
    'a replay with other ids is reported',
    { replayed: { promised: { ...promised, messageId: 'msg_2' }, replayed: true } },
    /promised s,msg_1/,
  ],
]

for (const [name, change, wrong] of cases)
  test(`the ledger: ${name}`, () => {
    const { violations } = campaign(change)
    if (wrong) assert.match(violations.join('\n'), wrong)
    else assert.deepEqual(violations, [])
  })
