// Text for a terminal: strangers' text made safe, tables, and a progress bar.

/** Security: terminals obey control characters, and others reverse the direction of text. Mail may contain both. */
const obeyed = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Replaces each control character by a visible sign. Keeps line ends and tabs. */
export function inertText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(obeyed, (one) => {
    const code = one.charCodeAt(0)
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd'
  })
}

/** Like `inertText`, in one line. */
export function inertLine(text: string): string {
  return inertText(text).replaceAll(/[\t\n]/g, ' ')
}

/** Returns a JSON document on one line, with control characters escaped. */
export function inertJson(value: unknown): string {
  // RFC 8259 7: any character may be escaped.
  return JSON.stringify(value).replace(
    obeyed,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Aligns cells in columns. The last column is not padded. */
export function table(rows: string[][]): string {
  const safe = rows.map((row) => row.map(inertLine))
  const widths = safe[0]?.map((_, column) => Math.max(...safe.map((row) => row[column]!.length))) ?? []
  return safe
    .map((row) =>
      row.map((cell, column) => (column < row.length - 1 ? cell.padEnd(widths[column]!) : cell)).join('  '),
    )
    .join('\n')
}

const barWidth = 30

/** A progress bar on standard error, if that is a terminal. */
export class Progress {
  readonly #total: number
  readonly #stream: NodeJS.WriteStream
  #done = 0

  constructor(total: number, stream: NodeJS.WriteStream = process.stderr) {
    this.#total = total
    this.#stream = stream
  }

  add(count: number): void {
    this.#done += count
    if (!this.#stream.isTTY) return
    const filled = Math.round((barWidth * this.#done) / Math.max(1, this.#total))
    const bar = '█'.repeat(filled).padEnd(barWidth, '░')
    this.#stream.write(`\r${bar} ${this.#done} of ${this.#total}${this.#done === this.#total ? '\n' : ''}`)
  }
}
