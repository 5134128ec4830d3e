// Reads a bounded excerpt of Rspamd's JSON answer about a mail, or null if it is not understood.

/** Rspamd's findings. The texts are printable ASCII, at most 100 characters each. */
export interface SpamFindings {
  score: number
  /** The score of the most severe action, or null if Rspamd names none. */
  requiredScore: number | null
  /** `no action`, `add header`, `rewrite subject`, `greylist`, `soft reject`, `reject`, or one of the operator's own. */
  action: string
  /** The names of up to 200 rules that matched, those with the most weight first. */
  symbols: string[]
}

const maxSymbols = 200
const maxTextLength = 100
/** Far above the scores of any rule set. */
const maxScore = 1e6

/** Null if the text is not an answer to a check. The caller bounds its length. Linear, except for sorting. */
export function readSpamFindings(text: string): SpamFindings | null {
  const answer = parseObject(text)
  if (!answer) return null
  const score = readScore(answer['score'])
  const action = typeof answer['action'] === 'string' ? printable(answer['action']).trim() : ''
  const symbols = answer['symbols'] === undefined ? [] : readSymbols(answer['symbols'])
  if (score === null || action === '' || !symbols) return null
  return { score, requiredScore: readScore(answer['required_score']), action, symbols }
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null // not JSON
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readScore(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) <= maxScore ? value : null
}

function readSymbols(value: unknown): string[] | null {
  if (!isObject(value)) return null
  const weighed = Object.entries(value).map(([name, rule]) => ({ name, weight: weightOf(rule) }))
  weighed.sort((a, b) => b.weight - a.weight)
  return weighed.slice(0, maxSymbols).flatMap(({ name }) => printable(name).trim() || [])
}

function weightOf(rule: unknown): number {
  return Math.abs((isObject(rule) ? readScore(rule['score']) : null) ?? 0)
}

/** Security: rule names can repeat text of the mail, and they reach logs, replies and people. */
function printable(text: string): string {
  return text.slice(0, maxTextLength).replace(/[^\x20-\x7e]/g, '?')
}
