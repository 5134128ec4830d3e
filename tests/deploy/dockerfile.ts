// Reads a Dockerfile: its stages, and the instructions of each.
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

/** The stages of `deploy/Dockerfile`. Throws at a line that is no instruction. */
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

/** The texts of all instructions of that name. */
export function textsOf({ instructions }: Stage, wanted: string): string[] {
  return instructions.filter(({ name }) => name === wanted).map(({ text }) => text)
}

/** What the image sets, by name. */
export function environmentOf(stage: Stage): Record<string, string> {
  const pairs = textsOf(stage, 'ENV').flatMap((text) => text.split(/\s+/))
  return Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]))
}

export interface Copy {
  /** The stage that it is taken from; null for the folder that is built. */
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
