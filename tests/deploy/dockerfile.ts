// Reads a Dockerfile into its stages and their instructions.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

export interface Instruction {
  name: string
  text: string
}

export interface Stage {
  image: string
  name: string
  instructions: Instruction[]
}

export const root = resolve(import.meta.dirname, '../..')

const known =
  /^(FROM|COPY|RUN|ENV|WORKDIR|USER|VOLUME|EXPOSE|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT|CMD|ARG|LABEL) +(\S.*)$/

/** Returns the stages of `deploy/Dockerfile`. Throws on a line that is not an instruction. */
export function readStages(): Stage[] {
  const text = readFileSync(`${root}/deploy/Dockerfile`, 'utf8')
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
  const stages: Stage[] = []
  for (const line of lines.filter(Boolean)) {
    const [, name, rest] = known.exec(line) ?? []
    if (!name || !rest) throw new Error(`no instruction: ${line}`)
    if (name !== 'FROM') {
      stages.at(-1)!.instructions.push({ name, text: rest.trim() })
      continue
    }
    const [image, , alias] = rest.split(/\s+/)
    stages.push({ image: image!, name: alias ?? '', instructions: [] })
  }
  return stages
}

/** Returns the texts of all instructions with this name. */
export function textsOf({ instructions }: Stage, wanted: string): string[] {
  return instructions.filter(({ name }) => name === wanted).map(({ text }) => text)
}

/** Returns the environment that the image sets, by name. */
export function environmentOf(stage: Stage): Record<string, string> {
  const pairs = textsOf(stage, 'ENV').flatMap((text) => text.split(/\s+/))
  return Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]))
}

export interface Copy {
  /** The stage copied from, or null for the build context. */
  from: string | null
  sources: string[]
  target: string
}

export function copiesOf(stage: Stage): Copy[] {
  return textsOf(stage, 'COPY').map((text) => {
    const [, from = null, paths] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(text)!
    const words = paths!.split(/\s+/)
    return { from, sources: words.slice(0, -1), target: words.at(-1)! }
  })
}
