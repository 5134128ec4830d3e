// Every published mail, suite by suite, as it comes over SMTP; single header fields and texts are put into mails.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'

const root = resolve(import.meta.dirname, '../..', process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata')

export interface CorpusMail {
  /** The path of its file below the published suites, with its name or index in the file after `#`. */
  name: string
  /** Every line ends with CRLF. */
  raw: Buffer
}

/** Suites whose files are mails, by the patterns of their file names. */
const suites: Record<string, string> = {
  'mime-cpython': 'msg_*.txt',
  'mime-mime4j': '*.msg',
  'mime-postalsys': '*.eml',
  'mime-stalwart': '*/*.eml',
  'dsn-arf': '*/*.eml',
  'bounce-sisimai': 'eml/*.eml',
  'dkim-chasquid': '*.msg',
}

/** For suites of single header fields: the mail field that each file becomes. */
const singleFields = {
  'address.json': 'To',
  'date.json': 'Date',
  'id.json': 'References',
  'unstructured.json': 'Subject',
}

/**
 * The mails of each suite, by its name. Duplicates are removed, and so are mails that the mail server refuses for their line
 * ends or a NUL. Absent suites are empty (an error in CI).
 */
export function readCorpora(): Map<string, CorpusMail[]> {
  const corpora = new Map<string, CorpusMail[]>()
  for (const [suite, pattern] of Object.entries(suites)) corpora.set(suite, filesOf(suite, pattern))
  corpora.set('arc-validation', messagesOfArc())
  corpora.set('header-fields-stalwart', mailsOfFields())
  corpora.set('naughty-strings', mailsOfStrings())
  for (const [suite, mails] of corpora) {
    if (mails.length === 0 && process.env['CI']) throw new Error(`no mails of ${suite} in ${root}`)
    corpora.set(suite, onlyTakenOnce(mails))
  }
  return corpora
}

function onlyTakenOnce(mails: CorpusMail[]): CorpusMail[] {
  const seen = new Set<string>()
  return mails.filter(({ raw }) => {
    const text = raw.toString('latin1')
    if (seen.has(text) || /\r(?!\n)|\0/.test(text)) return false
    return seen.add(text)
  })
}

function filesOf(suite: string, pattern: string): CorpusMail[] {
  const names = globSync(`${suite}/${pattern}`, { cwd: root }).sort()
  return names.map((name) => ({ name, raw: withCrlf(readFileSync(join(root, name))) }))
}

function messagesOfArc(): CorpusMail[] {
  const names = globSync('arc-validation/*.yml', { cwd: root }).sort()
  return names.flatMap((name) =>
    parseAllDocuments(readFileSync(join(root, name), 'utf8')).flatMap((document) => {
      const { tests = {} } = (document.toJS() ?? {}) as { tests?: Record<string, { message?: string }> }
      return Object.entries(tests).map(([test, { message = '' }]) => newMail(`${name}#${test}`, message))
    }),
  )
}

function mailsOfFields(): CorpusMail[] {
  return Object.entries(singleFields).flatMap(([file, field]) => {
    const name = `header-fields-stalwart/${file}`
    const cases = readJson<{ header: string }>(name)
    return cases.map(({ header }, at) => newMail(`${name}#${at}`, `${field}:${header.trimEnd()}\n\nbody\n`))
  })
}

function mailsOfStrings(): CorpusMail[] {
  const name = 'naughty-strings/blns.json'
  return readJson<string>(name).flatMap((text, at) => {
    if (text.trim() === '' || /[\r\n]/.test(text)) return []
    const header = `From: a@b.example\nSubject: ${text}\nContent-Type: text/plain; charset=utf-8`
    return [newMail(`${name}#${at}`, `${header}\n\n${text}\n`)]
  })
}

/** The list in the file, empty if the file is absent. */
function readJson<Item>(name: string): Item[] {
  return globSync(name, { cwd: root }).flatMap((file) => JSON.parse(readFileSync(join(root, file), 'utf8')))
}

const newMail = (name: string, text: string): CorpusMail => ({ name, raw: withCrlf(Buffer.from(text)) })

function withCrlf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1')
}
