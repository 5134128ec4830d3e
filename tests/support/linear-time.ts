// Shows whether a reader takes linear time and returns bounded output: repeats its tokens up to every limit.
import { cpuMsSince } from './cpu-time.ts'

/** One reader of bytes from strangers, and the tokens of its grammar. */
export interface Grammar {
  name: string
  /** Reads the text and returns the result. A reader of bytes encodes the text as Latin-1. */
  read: (text: string) => unknown
  /** The characters and words that have a meaning in the grammar. */
  tokens: readonly string[]
  /** Text around a run that completes it. Runs without a frame are always tried. */
  frames?: readonly (readonly [before: string, after: string])[]
  /** Lengths beyond which input is cut or skipped: many runs of just that length follow each other. */
  limits?: readonly number[]
  /** The text between two runs. */
  separator?: string
  /** The maximum output length for an input length. */
  longestOutput?: (inputLength: number) => number
  /** How often it reads the text, if more than once. The measured time is divided by this. */
  times?: number
  /** The longest input for it. */
  size?: number
}

/** In a token, this becomes another number each time. */
export const unique = '\ue000'

interface Case {
  grammar: Grammar
  /** The repeated token, and the form of the repetition. */
  shape: string
  /** Writes a text of about `size`, in runs of about `runLength`. */
  write(size: number, runLength: number): string
  runLength: number
}

const usualSize = 1 << 15
/** Shorter times are not judged: on a slow machine, pauses of the collector are as long. */
const floorMs = 40
/** The clock of processor time has steps of 4 ms on some systems. */
const measuredMs = 30
/** Processor time for 1 MiB: several times that of the slowest reader, because machines differ. */
const roofMs = 4000
const usualOverhead = 1024
/** A fault counts only if it is found each time: a concurrent test may slow the machine for some. */
const timesJudged = 4
/** Further faults add no information. */
const enough = 20

/** Reads every case of the grammar. Returns cases slower than linear time, and cases with too much output. */
export function findFaults(grammar: Grammar, factor = 1): string[] {
  const size = (grammar.size ?? usualSize) * factor
  const faults: string[] = []
  for (const one of casesOf(grammar, size, factor)) {
    const fault = judge(one, size)
    if (fault !== null) faults.push(`${one.shape}: ${fault}`)
    if (faults.length === enough) break
  }
  return faults
}

/** With a factor, pairs of tokens are tried within each frame as well. */
function* casesOf(grammar: Grammar, size: number, factor: number): Generator<Case> {
  const { tokens, limits = [] } = grammar
  const pairs = tokens.flatMap((first) =>
    tokens.filter((next) => next !== first).map((next) => [first, next]),
  )
  for (const [index, frame] of [unframed, ...(grammar.frames ?? [])].entries()) {
    for (const token of tokens) yield newCase(grammar, '', token, frame, size)
    for (const [first, next] of index === 0 || factor > 1 ? pairs : []) {
      yield newCase(grammar, '', first! + next, frame, size)
      yield newCase(grammar, first!, next!, frame, size)
    }
    // Input that is cut at a limit is read whole just under it.
    for (const limit of limits.filter((limit) => limit < size))
      for (const token of tokens) yield newCase(grammar, '', token, frame, limit - 10)
  }
}

const unframed = ['', ''] as const

function newCase(
  grammar: Grammar,
  first: string,
  repeated: string,
  [before, after]: readonly [string, string],
  runLength: number,
): Case {
  const { separator = ', ' } = grammar
  const runOf = (length: number) => {
    const room = length - before.length - after.length - first.length
    return before + first + repeated.repeat(Math.max(1, Math.floor(room / repeated.length))) + after
  }
  return {
    grammar,
    shape: JSON.stringify([before, first, `${repeated} …`, after, runLength]),
    runLength,
    write(size, length) {
      const run = runOf(length)
      const runs = Math.max(1, Math.floor(size / (run.length + separator.length)))
      let number = 0
      const text = Array<string>(runs).fill(run).join(separator)
      return text.replaceAll(unique, () => (number++).toString(36))
    },
  }
}

function judge(one: Case, size: number): string | null {
  const { grammar, write, runLength } = one
  const whole = write(size, runLength)
  const startedMs = performance.now()
  const before = process.threadCpuUsage()
  const output = grammar.read(whole)
  const usedMs = Math.min(cpuMsSince(before), performance.now() - startedMs)
  const growth = growthOf(grammar, whole, output)
  if (growth !== null || usedMs / (grammar.times ?? 1) < floorMs) return growth
  // A slowdown by other processes passes. A slowdown by the reader repeats.
  let fault: string | null = null
  for (let time = 0; time < timesJudged; time++) {
    fault = judgeTime(one, size)
    if (fault === null) return null
  }
  return fault
}

/** Describes output that is longer than allowed for this text. */
export function growthOf(grammar: Grammar, text: string, output: unknown): string | null {
  const { longestOutput = (length: number) => length + usualOverhead } = grammar
  const length = lengthOf(output)
  return length > longestOutput(text.length) ? `${length} characters out of ${text.length}` : null
}

/** Four times the text, in more or longer runs, may take four times as long. Runs of another length may not take longer. */
function judgeTime({ grammar, write, runLength }: Case, size: number): string | null {
  const wholeMs = timeOf(grammar, write(size, runLength))
  if (wholeMs < floorMs) return null
  if (wholeMs > (roofMs * size) / (1 << 20)) return `${Math.round(wholeMs)} ms for ${size} characters`
  const isOneRun = runLength >= size
  const quarterMs = timeOf(grammar, write(size / 4, isOneRun ? runLength / 4 : runLength))
  if (wholeMs > 8 * quarterMs) return `${quarterMs} ms become ${wholeMs} ms for four times as much`
  const shortMs = isOneRun ? wholeMs : timeOf(grammar, write(size, Math.ceil(runLength / 4)))
  if (wholeMs > 2.5 * shortMs) return `${shortMs} ms become ${wholeMs} ms for runs four times as long`
  return null
}

/**
 * Processor time of one reading, so that a busy machine fails no test. Several readings are averaged, because that clock is
 * coarse.
 */
function timeOf({ read, times = 1 }: Grammar, text: string): number {
  const before = process.threadCpuUsage()
  let count = 0
  do {
    read(text)
    count++
  } while (cpuMsSince(before) < measuredMs)
  return cpuMsSince(before) / count / times
}

/** The characters of all strings in it, and the bytes of all buffers. */
function lengthOf(output: unknown): number {
  if (typeof output === 'string') return output.length
  if (typeof output !== 'object' || output === null) return 0
  if (output instanceof Uint8Array) return output.length
  const values = output instanceof Map ? [...output].flat() : Object.values(output)
  return values.reduce<number>((sum, value) => sum + lengthOf(value), 0)
}
