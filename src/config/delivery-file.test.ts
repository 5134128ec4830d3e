// The file of delivery limits: its rules, and the line or key that each fault names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupOf } from '../flow/delivering/shaping-rules.ts'
import { poolChoice } from '../flow/source-pools.ts'
import { parseDeliveryFile } from './delivery-file.ts'
import { SettingError } from './setting-reader.ts'

const outbound = { ipv4: '192.0.2.4', ipv6: null }
const parse = (text: string) => parseDeliveryFile(text, 'delivery.toml', outbound)

const example = `
[default]
connections = 5

[[group]]
name = "yahoo"
messages-per-connection = 10

[[group]]
name = "campus"
mx = ["uni.example", "mx.other.example"]
connections = 2
messages = ["100/1m", "1000/1h"]

[[group.reply]]
code = 421
enhanced = "4.7.*"
text = "Too Fast"
pause = "10m"

[[pool]]
name = "letters"
purposes = ["transactional"]

[[pool.source]]
address = "192.0.2.5"
ehlo = "mail5.Example.com"

[[pool.source]]
address = "2001:db8::6"
ehlo = "mail6.example.com"
warm-up = { from = 2026-12-01, per-day = [50, 100] }

[[pool]]
name = "bulk"
organizations = ["01890a5d-ac96-774b-bcce-b302099a8057"]
source = [{ address = "192.0.2.7", ehlo = "bulk.example.com" }]
`

const pool = (name: string, address = '192.0.2.5') =>
  `[[pool]]\nname = "${name}"\n[[pool.source]]\naddress = "${address}"\nehlo = "mx.example"\n`
const warming = (plan: string) => `${pool('a')}warm-up = { ${plan} }`

test('delivery file: its groups come before the built-in ones, and keep what they leave out', () => {
  const rules = parse(example)
  const yahoo = groupOf(rules, 'yahoo.com', 'mta5.am0.yahoodns.net')
  assert.deepEqual(
    [yahoo.name, yahoo.rules.connections, yahoo.rules.messagesPerConnection],
    ['yahoo', 10, 10],
  )
  const campus = groupOf(rules, 'uni.example', 'mx2.uni.example').rules
  assert.deepEqual(campus.rates, [
    { count: 100, periodMs: 60_000 },
    { count: 1_000, periodMs: 3_600_000 },
  ])
  assert.deepEqual(campus.replies, [{ code: 421, enhanced: '4.7.*', text: 'too fast', pauseMs: 600_000 }])
  assert.equal(groupOf(rules, 'a.example', 'mx.a.example').rules.connections, 5)
  assert.equal(groupOf(rules, 'gmail.com', 'aspmx.l.google.com').rules.connections, 20)
})

test('delivery file: pools have sources, and are chosen by organization before purpose', () => {
  const { pools } = parse(example)
  const [letters] = pools
  assert.deepEqual(letters!.sources, [
    { address: '192.0.2.5', ehlo: 'mail5.example.com', warmUp: null },
    {
      address: '2001:db8::6',
      ehlo: 'mail6.example.com',
      warmUp: { fromMs: Date.UTC(2026, 11, 1), perDay: [50, 100] },
    },
  ])
  const bulk = '01890a5d-ac96-774b-bcce-b302099a8057'
  const other = bulk.replace('0', '1')
  const choose = poolChoice(pools)
  assert.equal(choose(bulk, 'transactional'), 'bulk')
  assert.equal(choose(other, 'transactional'), 'letters')
  assert.equal(choose(other, 'unclassified'), null)
  const rest = parse('[[pool]]\nname = "rest"\nsource = [{ address = "::1", ehlo = "a.b" }]')
  assert.equal(poolChoice(rest.pools)(other, 'unclassified'), 'rest')
})

test('delivery file: a fault names its line or key, and what to write', () => {
  const faults: [string, RegExp][] = [
    ['[default]\nconnections = ', /^delivery\.toml:2: .*: write TOML/],
    ['[default]\nconnections = 0', /default: connections = "0" is not valid: write a number from 1 to 1000/],
    ['[default]\nmessages = "100"', /default: messages = "100" is not valid: write "100\/1m"/],
    ['[default]\nconections = 3', /default: "conections" is unknown: did you mean connections\?/],
    ['[[groups]]\nname = "a"', /delivery\.toml: "groups" is unknown: did you mean group\?/],
    ['[[group]]\nmx = ["a.example"]', /group no\. 1: name has no name: write name = "google"/],
    ['[[group]]\nname = "a"', /group "a": mx is not there: write mx/],
    ['[[group]]\nname = "google"\n[[group]]\nname = "google"', /group "google" is there twice/],
    ['[[group]]\nname = "google"\nreply = [{ pause = "1m" }]', /reply no\. 1: code is not there/],
    [
      '[[group]]\nname = "google"\nreply = [{ code = 421 }]',
      /reply no\. 1: pause is not there: write pause = "10m"/,
    ],
    ['[[group]]\nname = "google"\nreply = [{ code = 250, pause = "1m" }]', /code = "250" is not valid/],
    ['[[pool]]\nname = "requiretls"', /name = "requiretls" is not valid: write "bulk"/],
    ['[[pool]]\nname = "a"', /pool "a": source is not there: write \[\[pool\.source\]\]/],
    [pool('a', '192.0.2.5, 192.0.2.6'), /source no\. 1: address = "192\.0\.2\.5, 192\.0\.2\.6" is not valid/],
    [pool('a', '0.0.0.0'), /address = "0\.0\.0\.0" is not valid: write "192\.0\.2\.5"/],
    [pool('a').replace('mx.example', 'localhost'), /ehlo = "localhost" is not valid: write "mail5/],
    [pool('a') + pool('a', '192.0.2.6'), /pool "a" is there twice/],
    [pool('a') + pool('b'), /address "192\.0\.2\.5" is there twice: name it in one pool/],
    [pool('a', '192.0.2.4'), /address "192\.0\.2\.4" is also in POSTHORN_OUTBOUND_IP/],
    [pool('a', '2001:db8::5') + pool('b', '2001:DB8:0::5'), /address "2001:db8::5" is there twice/],
    [pool('a') + pool('b', '192.0.2.6'), /pool "b" is the second one for all other mail/],
    [
      '[[pool]]\nname = "a"\npurposes = ["marketing"]',
      /purposes = .* is not valid: write \["transactional"\]/,
    ],
    [
      '[[pool]]\nname = "a"\norganizations = ["shop"]',
      /organizations = .* is not valid: write a list of ids/,
    ],
    [warming('from = "2026-02-31", per-day = [1]'), /warm-up: from = "2026-02-31" is not valid/],
    [warming('from = "2026-12-01"'), /warm-up: per-day is not there: write per-day = \[50, 100, 200\]/],
    [warming('from = "2026-12-01", per-day = [0]'), /per-day = "\[0\]" is not valid/],
    ['group = 3', /group = "3" is not valid: write \[\[group\]\]/],
  ]
  for (const [text, message] of faults) assert.throws(() => parse(text), { name: 'Error', message }, text)
})

test('delivery file: any text is read, or refused in one line', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ...example.split('\n'),
      '[[group.reply]]',
      'mx = [1]',
      '"a',
      'warm-up = { from = 2026-02-31 }',
    ),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (lines) => {
      try {
        parse(lines.join('\n'))
      } catch (error) {
        assert.ok(error instanceof SettingError, String(error))
        assert.doesNotMatch(error.message, /\n/)
      }
    }),
  )
})
