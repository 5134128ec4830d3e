// Blobs on OpenStack Swift, whose S3 API is another program than the one of the other tests.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { newUuid } from '../../src/base/ids.ts'
import { inPieces, makeStore, readAll, testStore } from '../support/store-tests.ts'
import { startSwift, swiftMissing } from '../support/swift.ts'

before(() => assert.ok(!process.env['CI'] || !swiftMissing, `in CI nothing is skipped: ${swiftMissing}`))

if (swiftMissing) test('a store on Swift', { skip: swiftMissing }, () => {})
else {
  const { makeUrl, env } = await startSwift({ after })
  testStore('store on Swift', makeUrl, env)

  test('a large blob goes to Swift in parts, and an upload that was given up leaves none', async () => {
    const blobs = await makeStore(makeUrl(), env)
    const bytes = randomBytes((16 << 20) + 5)
    const [key, other] = [newUuid(), newUuid()]
    await blobs.put(key, inPieces(bytes, 1 << 20))
    assert.ok((await readAll(blobs, key)).equals(bytes))
    const range = await blobs.open(key, { start: 16_000_000, end: bytes.length - 1 })
    assert.ok(Buffer.concat(await range!.toArray()).equals(bytes.subarray(16_000_000)))
    const writer = await blobs.create(other)
    await writer.write(bytes)
    const part = Number.parseInt(other.slice(-2), 16)
    const listed = async () => (await blobs.list(part)).filter((stored) => stored.key === other)
    assert.deepEqual(
      (await listed()).map(({ isFinished }) => isFinished),
      [false],
    )
    await writer.abort()
    assert.deepEqual(await listed(), [])
  })
}
