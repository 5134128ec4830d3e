// Tests of path.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePath, pathLength } from './path.ts'

const long = (count: number) => 'x'.repeat(count)

const good: [string, string, string, string][] = [
  ['<a@b.test>', 'a', 'b.test', 'a@b.test'],
  ['a@b.test', 'a', 'b.test', 'a@b.test'],
  ['<A.b+c@B.Test>', 'A.b+c', 'b.test', 'A.b+c@b.test'],
  ['<a@b.test.>', 'a', 'b.test', 'a@b.test'],
  ['<"a b"@b.test>', 'a b', 'b.test', '"a b"@b.test'],
  ['<"ab"@b.test>', 'ab', 'b.test', 'ab@b.test'],
  ['<"a\\b"@b.test>', 'ab', 'b.test', 'ab@b.test'],
  ['<"x@y"@b.test>', 'x@y', 'b.test', '"x@y"@b.test'],
  ['<"a\\"\\\\b"@b.test>', 'a"\\b', 'b.test', '"a\\"\\\\b"@b.test'],
  ['<"a>b"@b.test>', 'a>b', 'b.test', '"a>b"@b.test'],
  ['<".a"@b.test>', '.a', 'b.test', '".a"@b.test'],
  ['<@a.test,@c.test:u@b.test>', 'u', 'b.test', 'u@b.test'],
  ['<u%x@b.test>', 'u%x', 'b.test', 'u%x@b.test'],
  ['<x!u@b.test>', 'x!u', 'b.test', 'x!u@b.test'],
  ['<u@[192.0.2.1]>', 'u', '[192.0.2.1]', 'u@[192.0.2.1]'],
  ['<u@[IPv6:2001:DB8::1]>', 'u', '[ipv6:2001:db8::1]', 'u@[ipv6:2001:db8::1]'],
  ['<ü@Bücher.test>', 'ü', 'xn--bcher-kva.test', 'ü@xn--bcher-kva.test'],
  ['<u@XN--BCHER-KVA.test>', 'u', 'xn--bcher-kva.test', 'u@xn--bcher-kva.test'],
  ['<u@b>', 'u', 'b', 'u@b'],
  [`<${long(64)}@b.test>`, long(64), 'b.test', `${long(64)}@b.test`],
]
for (const [text, localPart, domain, address] of good) {
  test(`check 10, check 11: ${text} is read as a path`, () =>
    assert.deepEqual(parsePath(text), { localPart, domain, address }))
}

const bad: [string, string][] = [
  ['<>', 'syntax'],
  ['<a>', 'syntax'],
  ['<@b.test>', 'syntax'],
  ['<a@>', 'domain'],
  ['<a@b@c.test>', 'syntax'],
  ['<.a@b.test>', 'syntax'],
  ['<a.@b.test>', 'syntax'],
  ['<a..b@b.test>', 'syntax'],
  ['<a b@b.test>', 'syntax'],
  ['<""@b.test>', 'syntax'],
  ['<"a"b@b.test>', 'syntax'],
  ['<@a.test:>', 'syntax'],
  ['<@a.test,c.test:u@b.test>', 'syntax'],
  ['<@:u@b.test>', 'syntax'],
  ['<a@b..test>', 'domain'],
  ['<a@.b.test>', 'domain'],
  ['<a@b.test..>', 'domain'],
  ['<a@-b.test>', 'domain'],
  ['<a@b-.test>', 'domain'],
  ['<a@b_c.test>', 'domain'],
  ['<a@b.test/evil>', 'domain'],
  ['<a@%62.test>', 'domain'],
  ['<a@b．test／evil>', 'domain'],
  ['<a@xn--->', 'domain'],
  ['<a@[999.0.2.1]>', 'domain'],
  ['<a@[192.0.2.1>', 'domain'],
  ['<a@[IPv6:zz]>', 'domain'],
  [`<a@${long(64)}.test>`, 'domain'],
  [`<${long(250)}@b.test>`, 'too_long'],
  [`<${'ü'.repeat(125)}@b.test>`, 'too_long'],
]
for (const [text, fault] of bad)
  test(`${text} is refused as ${fault}`, () => assert.equal(parsePath(text), fault))

const lengths: [string, number][] = [
  ['<a@b> SIZE=1', 5],
  ['<"> "@b> X', 8],
  ['<"\\"> "@b>', 10],
  ['a@b X', 3],
  ['"a b"@c X', 7],
  ['<a@b', 0],
  ['<"a>', 0],
  ['', 0],
]
for (const [text, length] of lengths)
  test(`a path is read from ${text}`, () => assert.equal(pathLength(text), length))
