// Reads the Authentication-Results of a mail without product code: methods, results and properties.

export interface ReadResult {
  method: string
  result: string
  /** By `ptype.property`. */
  properties: Record<string, string>
}

/** The header fields with this name, unfolded, from the top. */
export function fieldsOf(mail: string, name: string): string[] {
  const header = mail
    .replaceAll('\r\n', '\n')
    .split('\n\n')[0]!
    .replace(/\n[ \t]+/g, ' ')
  const start = `${name.toLowerCase()}:`
  return header
    .split('\n')
    .filter((line) => line.toLowerCase().startsWith(start))
    .map((line) => line.slice(start.length).trim())
}

/** The results in all fields of `server`. */
export function authResultsOf(mail: string, server: string): ReadResult[] {
  return fieldsOf(mail, 'Authentication-Results').flatMap((field) => {
    const [id = '', ...entries] = withoutProse(field)
      .split(';')
      .map((entry) => entry.trim())
    return id.split(' ')[0] === server ? entries.flatMap(readEntry) : []
  })
}

function readEntry(entry: string): ReadResult[] {
  const [, method, result, rest = ''] = /^([\w-]+)=(\w+)(.*)$/.exec(entry) ?? []
  if (method === undefined || result === undefined) return []
  const properties = [...rest.matchAll(/ ([\w-]+\.[\w-]+)=(\S+)/g)].map(([, name, value]) => [name, value])
  return [{ method, result, properties: Object.fromEntries(properties) }]
}

/** Removes comments and reasons, which may contain anything. Quoted values lose their quotes and any delimiter inside. */
function withoutProse(field: string): string {
  const plain = field
    .replace(/ reason="(?:[^"\\]|\\.)*"/g, '')
    .replace(/"((?:[^"\\]|\\.)*)"/g, (_, inner: string) => inner.replace(/[;() ]/g, '_'))
  let [depth, text] = [0, '']
  for (const char of plain) {
    if (char === '(') depth++
    if (depth === 0) text += char
    if (char === ')') depth--
  }
  return text
}
