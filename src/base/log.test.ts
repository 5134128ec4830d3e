// The format of log lines: for people a date and the node, for collectors a level by its name.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { test } from 'node:test'
import type { LogFormat } from './log.ts'

/** Returns the standard error output of a separate program. */
function written(format: LogFormat, statement: string): string {
  const module = new URL('log.ts', import.meta.url).href
  const program = `import { createLog } from '${module}'\nconst log = createLog('debug', '${format}')\n${statement}`
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return stderr
}

for (const level of ['debug', 'info', 'warn', 'error'])
  test(`F23: JSON names the level ${level}, the node and the time`, () => {
    const { time, ...line } = JSON.parse(written('json', `log.${level}({ inbox: 'inb_1' }, 'opened')`))
    assert.deepEqual(line, { level, node: hostname(), inbox: 'inb_1', msg: 'opened' })
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

test('F23: a line for people shows the date and the node', () => {
  const lines = written('pretty', `log.warn({ inbox: 'inb_1', count: 2 }, 'opened')`)
  const [, date, rest] = /^(\S+ \S+) ([\s\S]*)$/.exec(lines)!
  assert.match(date!, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(rest, `${hostname()} warn  opened inbox=inb_1 count=2\n`)
})

test('an error is logged with its stack below the line', () => {
  const lines = written('pretty', `log.error({ err: new Error('no') }, 'failed')`).split('\n')
  assert.match(lines[0]!, / ERROR failed$/)
  assert.equal(lines[1], 'Error: no')
})
