// The written forms of servers, and the servers of the system.
import assert from 'node:assert/strict'
import { getServers } from 'node:dns'
import { test } from 'node:test'
import { NameServers } from './name-servers.ts'

for (const [text, ip, family, port] of [
  ['192.0.2.1', '192.0.2.1', 4, 53],
  ['192.0.2.1:5353', '192.0.2.1', 4, 5353],
  ['2001:db8::1', '2001:db8::1', 6, 53],
  ['[2001:db8::1]', '2001:db8::1', 6, 53],
  ['[2001:db8::1]:5353', '2001:db8::1', 6, 5353],
  ['fe80::1%eth0', 'fe80::1%eth0', 6, 53],
] as const)
  test(`${text} is read as a server at port ${port}`, () => {
    assert.deepEqual(new NameServers([text]).list(), [{ ip, family, port }])
  })

test('without configured servers the system’s servers are asked', () => {
  assert.deepEqual(
    new NameServers([]).list().map(({ ip }) => ip),
    getServers().map((text) => /^\[?([^\]]*?)\]?(?::\d+)?$/.exec(text)?.[1] ?? text),
  )
})

test('check 52: a silent server is listed last until it answers', () => {
  const servers = new NameServers(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  const order = () =>
    servers
      .list()
      .map(({ ip }) => ip.at(-1))
      .join('')
  const [first] = servers.list()
  servers.note(first!, 'silent')
  const after = order()
  servers.note(first!, 'answers')
  assert.deepEqual([after, order()], ['231', '123'])
})
