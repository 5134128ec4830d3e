// Generates the Python client and runs its own tests, among them the scenarios that the client libraries share.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readDocument, root } from '../../scripts/documents.ts'
import { writePythonClient } from '../../scripts/sdk/python/write.ts'

const folder = join(root, 'sdk/python')
const { error } = spawnSync('python3', ['--version'])

test('the Python client passes its tests', { skip: error ? 'python3 is not installed' : false }, async () => {
  writePythonClient(await readDocument('/openapi.json'))
  const { status, stderr } = spawnSync('python3', ['-m', 'unittest', 'discover', '-s', 'tests'], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, PYTHONPATH: join(folder, 'src'), PYTHONDONTWRITEBYTECODE: '1' },
  })
  assert.equal(status, 0, stderr)
  // A run that finds no test succeeds too. Each scenario is played blocking and with asyncio.
  const { scenarios, webhooks } = JSON.parse(readFileSync(join(root, 'sdk/scenarios.json'), 'utf8'))
  const [, count] = /^Ran (\d+) tests/m.exec(stderr)!
  assert.ok(Number(count) > 2 * scenarios.length + webhooks.length, stderr)
})
