// Shows whether a reader takes linear time and gives out no more than it was given: its tokens, repeated up to every limit.

/** One reader of bytes that strangers write, and what it is made of. */
export interface Grammar {
  name: string
  /** Reads the text and answers what it made of it; a reader of bytes takes them out of the text as Latin-1. */
  read: (text: string) => unknown
  /** The signs and words that mean something to it. */
  tokens: readonly string[]
  /** What stands around a run so that it is finished; that nothing does is tried anyway. */
  frames?: readonly (readonly [before: string, after: string])[]
  /** Lengths beyond which something is cut or passed over: many runs just as long follow each other. */
  limits?: readonly number[]
  /** What stands between two runs. */
  separator?: string
  /** How many characters it may make of so many. */
  longestOutput?: (inputLength: number) => number
  /** How often it reads the text, where it does so more than once: its time is divided by that. */
  times?: number
  /** The longest input that it is given. */
  size?: number
}

/** In a token it is another number each time. */
export const unique = '\ue000'

interface Case {
  grammar: Grammar
  /** What is repeated, and how. */
  shape: string
  /** The text of about that length, of runs of about that length. */
  write(size: number, runLength: number): string
  runLength: number
}

const usualSize = 1 << 15
/** What is faster than this is not judged: on a slow machine the collector's pauses are as long. */
const floorMs = 40
/** The clock of processor time goes by 4 ms on some systems. */
const measuredMs = 30
/** Of processor time, for 1 MiB: several times what the slowest reader takes, for machines differ. */
const roofMs = 4000
const usualOverhead = 1024
/** A fault is one only where it is found each time: a test beside it may slow the machine for some. */
const timesJudged = 4
/** More of them say no more. */
const enough = 20

/** Reads every case of the grammar; answers what is worse than linear, and what grows. */
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
    // What is cut at a limit is read whole just under it.
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
  const usedMs = Math.min(threadMs(before), performance.now() - startedMs)
  const growth = growthOf(grammar, whole, output)
  if (growth !== null || usedMs / (grammar.times ?? 1) < floorMs) return growth
  // What the machine does beside it passes; what the reader does comes again.
  let fault: string | null = null
  for (let time = 0; time < timesJudged; time++) {
    fault = judgeTime(one, size)
    if (fault === null) return null
  }
  return fault
}

/** Says so where the output is longer than it may be for this text. */
export function growthOf(grammar: Grammar, text: string, output: unknown): string | null {
  const { longestOutput = (length: number) => length + usualOverhead } = grammar
  const length = lengthOf(output)
  return length > longestOutput(text.length) ? `${length} characters out of ${text.length}` : null
}

/** Four times as much, in more runs or in longer ones, may take four times as long; so many runs of any length, as long. */
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

/** Processor time of one reading, so that a busy machine fails nothing; out of several, for that clock is a coarse one. */
function timeOf({ read, times = 1 }: Grammar, text: string): number {
  const before = process.threadCpuUsage()
  let count = 0
  do {
    read(text)
    count++
  } while (threadMs(before) < measuredMs)
  return threadMs(before) / count / times
}

function threadMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** The characters of all strings in it, and the bytes of all buffers. */
function lengthOf(output: unknown): number {
  if (typeof output === 'string') return output.length
  if (typeof output !== 'object' || output === null) return 0
  if (output instanceof Uint8Array) return output.length
  const values = output instanceof Map ? [...output].flat() : Object.values(output)
  return values.reduce<number>((sum, value) => sum + lengthOf(value), 0)
}
