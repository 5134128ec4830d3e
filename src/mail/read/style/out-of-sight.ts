// CSS values that move text out of sight: clips, masks and transforms.
import { parseColor } from './css-color.ts'
import { type Length, parseLength, pixelsOf } from './css-length.ts'

/** The effect of a transform on text: moved out of sight, or scaled by a factor. */
export interface Transform {
  isAway: boolean
  scale: number
}

/** Text shifted by less than this still shows the end of its line. */
const tooFar = 499
const farRight = 5_000
/** A mask with a lower alpha shows nothing. */
const leastAlpha = 0.05

/** The words of a value. Brackets and their content belong to one word. */
export function wordsOf(value: string): string[] {
  const words: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= value.length; at++) {
    const character = value[at]
    if (character === '(') depth++
    else if (character === ')') depth--
    else if (character === undefined || (character === ' ' && depth <= 0)) {
      if (at > start) words.push(value.slice(start, at))
      start = at + 1
    }
  }
  return words
}

export function isAway(written: string): boolean {
  const length = parseLength(written)
  if (length === null) return false
  const px = pixelsOf(length, 16, 1024)
  return px <= -tooFar || px >= farRight
}

const argumentsOf = (content: string) => wordsOf(content.replaceAll(',', ' '))

/** Whether `rect(top, right, bottom, left)` leaves at most one pixel of height or width. */
export function readClip(value: string): boolean {
  const match = /^rect\((.*)\)$/.exec(value)
  if (match === null) return false
  const [top, right, bottom, left] = argumentsOf(match[1]!).map((word) => parseLength(word)?.px ?? null)
  const isNothing = (from: number | null | undefined, to: number | null | undefined) =>
    to != null && to - (from ?? 0) <= 1
  return isNothing(top, bottom) || isNothing(left, right)
}

const sizeOf = (length: Length | undefined) => (length ? pixelsOf(length, 16, 1000) : 0)

export function cutsOut(value: string): boolean {
  const match = /^(inset|circle|ellipse|polygon|rect|xywh|path)\((.*)\)/.exec(value)
  if (match === null) return false
  const [, shape, content] = match
  const sizes = argumentsOf(content!.replace(/ (?:round|at) .*/, '')).flatMap(
    (word) => parseLength(word) ?? [],
  )
  if (shape === 'circle' || shape === 'ellipse')
    return sizes.length > 0 && sizes.some((length) => sizeOf(length) <= 1)
  const [first = 0, second = first, third = first, fourth = second] = sizes.map(sizeOf)
  if (shape === 'inset') return first + third >= 999 || second + fourth >= 999
  if (shape === 'rect') return sizes.length === 4 && (third - first <= 1 || second - fourth <= 1)
  if (shape === 'xywh') return third <= 1 || fourth <= 1
  if (shape === 'path') return !/[^mz\d\s.,"-]/.test(content!)
  const spread = (axis: number) => {
    const along = sizes.filter((_, index) => index % 2 === axis).map(sizeOf)
    return Math.max(...along) - Math.min(...along)
  }
  return sizes.length > 1 && (spread(0) <= 1 || spread(1) <= 1)
}

/** Whether the mask has only transparent colors or is a picture, which counts as not loaded. */
export function masksAll(value: string): boolean {
  if (value.includes('url(')) return true
  const gradient = /gradient\((.*)\)/.exec(value)?.[1]
  const colors = argumentsOf(gradient ?? '').map((word) => parseColor(word))
  const known = colors.filter((color) => color !== null)
  return known.length > 0 && known.every((color) => color !== 'unknown' && color.alpha < leastAlpha)
}

const inDegrees: Record<string, number> = { deg: 1, turn: 360, grad: 0.9, rad: 180 / Math.PI }

/** Whether an element rotated by this angle is seen from its edge. */
export function isRightAngle(written: string): boolean {
  const unit = /[a-z]+$/.exec(written)?.[0] ?? ''
  const degrees = Number.parseFloat(written) * (inDegrees[unit] ?? 0)
  return Math.abs(Math.abs(degrees % 180) - 90) < 0.5
}

export const leastOf = (scales: number[]) => Math.min(1, ...scales.filter((scale) => !Number.isNaN(scale)))

export function scaleOf(word: string): number {
  return Math.abs(Number.parseFloat(word)) / (word.endsWith('%') ? 100 : 1)
}

/** The combined effect of all functions in a `transform` value. */
export function readTransform(value: string): Transform {
  const steps = wordsOf(value.replace(/\)(?=[a-z])/g, ') ')).map(readStep)
  return {
    isAway: steps.some((step) => step.isAway),
    scale: steps.reduce((product, { scale }) => product * scale, 1),
  }
}

function readStep(written: string): Transform {
  const [, name = '', content = ''] = /^([a-z0-9]+)\((.*)\)$/.exec(written) ?? []
  const given = argumentsOf(content)
  if (name.startsWith('scale')) return { isAway: false, scale: leastOf(given.slice(0, 2).map(scaleOf)) }
  if (name.startsWith('translate')) return { isAway: given.some(isAway), scale: 1 }
  const last = given.at(-1) ?? ''
  if (name === 'rotatex' || name === 'rotatey' || name.startsWith('skew'))
    return { isAway: given.some(isRightAngle), scale: 1 }
  if (name === 'rotate3d') return { isAway: Number(given[2]) === 0 && isRightAngle(last), scale: 1 }
  const numbers = given.map(Number.parseFloat)
  if (name === 'matrix') return ofMatrix(numbers, given.slice(4))
  if (name !== 'matrix3d') return { isAway: false, scale: 1 }
  return ofMatrix([numbers[0]!, numbers[1]!, numbers[4]!, numbers[5]!], given.slice(12, 14))
}

/** The scale is the square root of the determinant, at most 1. */
function ofMatrix([a = 1, b = 0, c = 0, d = 1]: number[], moved: string[]): Transform {
  return { isAway: moved.some(isAway), scale: Math.min(1, Math.sqrt(Math.abs(a * d - b * c))) }
}
