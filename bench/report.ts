// What a benchmark prints: the machine and the versions, then one table a case, figures side by side.
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { Endings, temporaryFolder } from './children.ts'
import { fastifyVersion } from './peers/fastify.ts'
import { harakaVersion } from './peers/haraka.ts'
import { pgbenchVersion } from './peers/pgbench.ts'
import { postfixVersion } from './peers/postfix.ts'
import { postgresVersion } from './peers/posthorn.ts'
import { type Outcome, pairwiseRatio, spread } from './rounds.ts'

/** Machine, flush cost and versions, as lines of text. */
export async function describeMachine(): Promise<string> {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const versions = {
    Node: process.versions.node,
    PostgreSQL: postgresVersion(),
    Fastify: fastifyVersion(),
    Postfix: await postfixVersion().catch(() => 'missing'),
    Haraka: harakaVersion(),
    pgbench: await pgbenchVersion(),
  }
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `${cpus().length} × ${cpus()[0]?.model ?? 'unknown CPU'}, ${memory}, Linux ${release()}`,
    `a flush of 8 KiB in ${tmpdir()} takes ${(await measureFlushMs()).toFixed(2)} ms (median of 200)`,
    named.join(', '),
  ].join('\n')
}

/** One case as a table: a block a figure, a line a contender; the last column divides the first contender by the other. */
export function formatCase(title: string, outcomes: Outcome[]): string {
  const first = outcomes[0]
  const figures = new Set(outcomes.flatMap(({ samples }) => Object.keys(samples[0] ?? {})))
  const rows: string[][] = [['', '', 'min', 'median', 'max', `${first?.name ?? ''} ÷ it`]]
  for (const figure of figures) {
    for (const outcome of outcomes) {
      const values = outcome.samples.flatMap((sample) => sample[figure] ?? [])
      const range = spread(values)
      if (!range) continue
      const ratio = first && first !== outcome ? pairwiseRatio(first, outcome, figure) : null
      rows.push([
        figure,
        outcome.name,
        ...[range.min, range.median, range.max].map(formatNumber),
        ratio === null ? '' : ratio.toFixed(2),
      ])
    }
  }
  const absences = outcomes.flatMap(({ name, absence }) => (absence ? [`  ${name}: ${absence}`] : []))
  return [title, ...(rows.length > 1 ? align(rows) : []), ...absences, ''].join('\n')
}

function align(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row, index) => {
    const repeated = index > 1 && rows[index - 1]![0] === row[0]
    const cells = row.map((cell, column) => {
      if (column === 0) return (repeated ? '' : cell).padEnd(widths[0]!)
      return column === 1 ? cell.padEnd(widths[1]!) : cell.padStart(widths[column]!)
    })
    return `  ${cells.join('  ')}`.trimEnd()
  })
}

function formatNumber(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

async function measureFlushMs(): Promise<number> {
  const scope = new Endings()
  const file = openSync(join(temporaryFolder(scope, 'flush'), 'file'), 'w')
  const block = Buffer.alloc(8192, 1)
  const timesMs = Array.from({ length: 200 }, () => {
    writeSync(file, block)
    const startedMs = performance.now()
    fdatasyncSync(file)
    return performance.now() - startedMs
  })
  closeSync(file)
  await scope.run()
  return spread(timesMs)!.median
}
