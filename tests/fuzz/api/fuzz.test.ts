// Sends requests generated from the document to every operation; `npm run test:fuzz` sends more.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { boundariesOf } from './boundary.ts'
import { fuzz, ways } from './campaign.ts'
import { readOperations } from './document.ts'
import { World } from './world.ts'

/** Requests over all operations, for each way. */
const requests = 5_000
const seed = Number(process.env['POSTHORN_TEST_SEED'] ?? Date.now() % 1e9)

const world = await World.create({ after })
const operations = await readOperations(world.base)
console.log(`seed ${seed}: POSTHORN_TEST_SEED sets it`)

for (const way of ways)
  for (const operation of operations) {
    if (way === 'boundary' && boundariesOf(operation).length === 0) continue
    test(`check 71, 74: ${operation.name} answers ${way} requests as documented`, async () => {
      const each = Math.ceil(requests / operations.length)
      const { byStatus } = await fuzz(world, operation, way, { requests: each, seed })
      const statuses = [...byStatus.keys()]
      if (way === 'valid')
        assert.ok(
          statuses.some((status) => status < 300),
          `none was taken: ${statuses}`,
        )
      if (way === 'invalid')
        assert.ok(
          statuses.every((status) => status >= 400 && status < 500),
          String(statuses),
        )
    })
  }

test('check 71: the service is as healthy as before', async () => {
  assert.ok(await world.isAlive())
  assert.ok(!world.log().includes('"level":50'), 'something was logged as a fault')
  // The service runs in this process, so a polluted prototype would show here.
  for (const name in {}) assert.fail(`every object has a ${name}`)
})
