// Names and texts in Python's habits.

const keywords = new Set(['from', 'import', 'class', 'global', 'is', 'in', 'pass', 'return', 'with', 'def'])

/** `replyTo` is `reply_to`, and `from` is `from_`, because Python's own words cannot be names. */
export function snakeCase(name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return keywords.has(snake) ? `${snake}_` : snake
}

export function pascalCase(name: string): string {
  return name.replace(/(?:^|[-_.])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Whether the name can be a field of a class. */
export function isField(name: string): boolean {
  return /^[a-z_]\w*$/i.test(name) && !keywords.has(name)
}

/** Breaks a text into lines of up to `width` characters, except for longer words. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** Writes a text as a string literal. JSON's escapes are Python's too. */
export function literal(text: string): string {
  return JSON.stringify(text)
}

/** Writes a docstring, indented by as many spaces. Its first line says all in short. */
export function docstring(summary: string, rest: string, indent: number): string[] {
  const margin = ' '.repeat(indent)
  const paragraphs = rest.split('\n\n').filter(Boolean)
  // A backslash in a docstring would begin an escape.
  const clean = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")
  if (paragraphs.length === 0) return [`${margin}"""${clean(summary)}"""`]
  const body = paragraphs.flatMap((paragraph) => ['', ...wrap(clean(paragraph), 116 - indent)])
  return [
    `${margin}"""${clean(summary)}`,
    ...body.map((line) => (line === '' ? '' : margin + line)),
    `${margin}"""`,
  ]
}
