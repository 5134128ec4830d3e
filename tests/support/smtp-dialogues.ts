// chasquid's published SMTP dialogues (test/t-12-minor_dialogs) and its fuzz corpus, as the bytes of each side.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
export const dialoguesFolder = join(testdata, 'smtp-dialogues-chasquid')
const present = existsSync(dialoguesFolder)

/** File names; empty if the suite is absent. */
export const dialogueNames = present
  ? readdirSync(dialoguesFolder).filter((name) => name.endsWith('.cmy'))
  : []
export const fuzzInputNames = present ? readdirSync(join(dialoguesFolder, 'fuzz/FuzzConnection')) : []

/** One row of a dialogue. `sign` is `->` or `~>` for the client's bytes, and begins with `<` for those it receives. */
export interface DialogueRow {
  sign: string
  rest: string
}

export function readDialogue(name: string): DialogueRow[] {
  return readFileSync(join(dialoguesFolder, name), 'utf8')
    .split('\n')
    .map((row) => /^c (\S+) ?(.*)$/.exec(row) ?? [])
    .map(([, sign = '', rest = '']) => ({ sign, rest }))
}

/** The bytes that the client sends in this row; null if it sends none. */
export function saidIn({ sign, rest }: DialogueRow): Buffer | null {
  if (sign === '->') return Buffer.from(`${rest}\r\n`)
  return sign === '~>' ? Buffer.from(evaluate(rest), 'latin1') : null
}

/** The few Python expressions that the dialogues use: strings joined by `+`, repeated by `*`, one pair of brackets. */
function evaluate(expression: string): string {
  const repeated = /^\((.*)\) \* (\d+)$/.exec(expression)
  if (repeated) return evaluate(repeated[1]!).repeat(Number(repeated[2]))
  return expression
    .split(' + ')
    .map((term) => {
      const [, text, count] = /^'(.*)'(?: \* (\d+))?$/.exec(term) ?? []
      if (text === undefined) throw new Error(`cannot evaluate ${term}`)
      return (JSON.parse(`"${text}"`) as string).repeat(Number(count ?? 1))
    })
    .join('')
}

/** An input of the corpus, its lines ended by LF. */
export function readFuzzInput(name: string): string {
  const file = readFileSync(join(dialoguesFolder, 'fuzz/FuzzConnection', name), 'utf8')
  const [, literal = '""'] = /\[\]byte\((".*")\)/.exec(file) ?? []
  return JSON.parse(literal)
}
