// Tests the doctor's report on ports below 1024, which the systemd unit opens to the service only.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { run } from '../support/command.ts'
import { startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../bin/posthorn')
const withoutRight = ['--inh-caps=-all', '--bounding-set=-net_bind_service', program, 'doctor', '--json']
const isAble = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0
const missing = isAble ? false : 'only root can give a right away, by setpriv'

test('the doctor finds a running service on ports that the doctor itself may not use', {
  skip: missing,
}, async (t) => {
  const host = `127.${randomInt(1, 255)}.${randomInt(255)}.25`
  const env = { POSTHORN_SMTP: `${host}:25`, POSTHORN_HTTP: `${host}:80` }
  const posthorn = await startPosthorn(t, { env, roles: 'api,mx' })
  const portsNow = async () => {
    const { stdout } = await run('setpriv', withoutRight, posthorn.env, posthorn.folder)
    const { checks } = JSON.parse(stdout) as { checks: { name: string; detail: string }[] }
    return checks.filter(({ name }) => /^(?:HTTP|SMTP) port$/.test(name)).map(({ detail }) => detail)
  }
  const answers = [80, 25].map((port) => `${host}:${port}: a running Posthorn answers`)
  // The command waits 2 s for an answer, which a busy machine may exceed.
  await until('both ports to answer', async () => isDeepStrictEqual(await portsNow(), answers))
  assert.equal(await posthorn.stop(), 0)
  for (const detail of await portsNow()) assert.doesNotMatch(detail, /answers|free/)
})
