// The output of a benchmark: the machine and the versions, then one table per case.
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { Endings, temporaryFolder } from './children.ts'
import { fastifyVersion } from './peers/fastify.ts'
import { harakaVersions } from './peers/haraka.ts'
import { pgbenchVersion } from './peers/pgbench.ts'
import { postfixVersion } from './peers/postfix.ts'
import { postgresVersion } from './peers/posthorn.ts'
import { opendkimVersion } from './peers/signing.ts'
import { type Outcome, pairwiseRatio, type Sample, spread } from './rounds.ts'

/** Returns the machine, its flush cost and the versions, as lines of text. */
export async function describeMachine(): Promise<string> {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const versions = {
    Node: process.versions.node,
    PostgreSQL: postgresVersion(),
    Fastify: fastifyVersion(),
    Postfix: await postfixVersion().catch(() => 'missing'),
    opendkim: await opendkimVersion(),
    ...harakaVersions(),
    pgbench: await pgbenchVersion(),
  }
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `${cpus().length} × ${cpus()[0]?.model ?? 'unknown CPU'}, ${memory}, Linux ${release()}`,
    `a flush of 8 KiB in ${tmpdir()} takes ${(await measureFlushMs()).toFixed(2)} ms (median of 200)`,
    named.join(', '),
  ].join('\n')
}

/**
 * Formats one case as a table: a block per figure, a line per contender. The first column divides the first contender
 * by the other.
 */
export function formatCase(title: string, outcomes: Outcome[]): string {
  const first = outcomes[0]
  const figures = new Set(outcomes.flatMap(({ samples }) => Object.keys(samples[0] ?? {})))
  const rows: string[][] = [['', '', `${first?.name ?? ''} ÷ it`, 'median', 'min', 'max']]
  for (const figure of figures) {
    for (const outcome of outcomes) {
      const values = outcome.samples.flatMap((sample) => sample[figure] ?? [])
      const range = spread(values)
      if (!range) continue
      const ratio = first && first !== outcome ? pairwiseRatio(first, outcome, figure) : null
      rows.push([
        figure,
        outcome.name,
        ratio === null ? '' : ratio.toFixed(2),
        ...[range.median, range.min, range.max].map(formatNumber),
      ])
    }
  }
  const absences = outcomes.flatMap(({ name, absence }) => (absence ? [`  ${name}: ${absence}`] : []))
  return [title, ...(rows.length > 1 ? align(rows) : []), ...absences, ''].join('\n')
}

/**
 * Formats two contenders of many operations: a line per operation with both medians of each kind of figure, and the median
 * ratio. A figure is named `operation, kind`.
 */
export function formatGrowth(title: string, many: Outcome, few: Outcome): string {
  const failed = [many, few]
    .filter(({ absence }) => absence)
    .map(({ name, absence }) => `  ${name}: ${absence}`)
  const figures = Object.keys(many.samples[0] ?? {})
  const splitAt = (figure: string) => figure.lastIndexOf(', ')
  const kinds = [...new Set(figures.map((figure) => figure.slice(splitAt(figure) + 2)))]
  const operations = [...new Set(figures.map((figure) => figure.slice(0, splitAt(figure))))]
  const cells = (figure: string) => {
    const medianOf = ({ samples }: Outcome) =>
      spread(samples.flatMap((sample) => sample[figure] ?? []))?.median
    const [below, above, ratio] = [medianOf(few), medianOf(many), pairwiseRatio(many, few, figure)]
    if (below === undefined || above === undefined || ratio === null) return ['', '', '']
    return [formatNumber(below), formatNumber(above), ratio.toFixed(2)]
  }
  const rows = operations.map((name) => [name, '', ...kinds.flatMap((kind) => cells(`${name}, ${kind}`))])
  const head = ['', '', ...kinds.flatMap((kind) => [`${kind}: few`, 'many', 'ratio'])]
  return [`${title}: ${few.name} and ${many.name}`, ...align([head, ...rows]), ...failed, ''].join('\n')
}

/** Formats figures that were measured once as a table: a line per figure, a column per sample. */
export function formatFigures(title: string, columns: readonly { name: string; sample: Sample }[]): string {
  const figures = Object.keys(columns[0]?.sample ?? {})
  const rows = figures.map((figure) => [
    figure,
    ...columns.map(({ sample }) => formatNumber(sample[figure]!)),
  ])
  const widths = columns.map((_, column) => Math.max(8, ...rows.map((row) => row[column + 1]!.length)))
  const label = Math.max(...figures.map(({ length }) => length))
  const lines = rows.map(([figure, ...cells]) => {
    return `  ${figure!.padEnd(label)}  ${cells.map((cell, column) => cell.padStart(widths[column]!)).join('  ')}`
  })
  return [title, ...lines].join('\n')
}

/** Draws a figure over time as one line of bars, each the maximum of its interval. Empty if there are no values. */
export function formatCourse(label: string, values: readonly number[], unit: string, width = 60): string {
  if (values.length === 0) return ''
  const bars = '▁▂▃▄▅▆▇█'
  const columns = Math.min(width, values.length)
  const highest = Math.max(...values)
  const drawn = Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns)
    const until = Math.floor(((column + 1) * values.length) / columns)
    const value = Math.max(...values.slice(from, until))
    return bars[highest > 0 ? Math.round((value / highest) * (bars.length - 1)) : 0]
  })
  return `  ${drawn.join('')}  ${label}, up to ${formatNumber(highest)} ${unit}`
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
