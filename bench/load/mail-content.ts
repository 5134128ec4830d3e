// The content of the benchmarks' mails: different for each number, with text and HTML, some with a file.
import { type Random, randomOf, writeParagraphs, writeWords } from './prose.ts'

/** `textBytes` counts text and HTML together. */
export interface MailShape {
  textBytes: number
  /** Whether one in ten carries a file of 100 KB. */
  files: 'none' | 'some'
  /** The size of a file that each mail carries. */
  attachedBytes?: number
}

export interface MailContent {
  subject: string
  /** Lines end in a bare newline, in the HTML too. */
  text: string
  html: string
  /** Incompressible bytes in base64. */
  file: string | null
}

const usualFileBytes = 100_000
const fileShare = 0.1
/** The text's share of text and HTML in one mail. The HTML has the same words, plus its tags. */
const textShare = 0.43

/** Returns the same content for the same number and shape, in every run and for every contender. */
export function writeContent(number: number, { textBytes, files, attachedBytes }: MailShape): MailContent {
  const random = randomOf(number)
  const hasUsualFile = random() < fileShare && files === 'some'
  const fileBytes = attachedBytes ?? (hasUsualFile ? usualFileBytes : null)
  const subject = writeWords(random, 3 + Math.floor(6 * random()))
  const paragraphs = writeParagraphs(random, Math.floor(textBytes * textShare))
  const text = paragraphs.map((paragraph) => wrap(paragraph, '')).join('\n\n')
  const html = writeHtml(random, subject, paragraphs)
  return { subject, text, html, file: fileBytes === null ? null : writeFile(random, fileBytes) }
}

/** Writes a message with CRLF at each line end: these fields (folded by a bare newline), then its own. */
export function writeMessage(content: MailContent, fields: readonly string[]): string {
  const { subject, text, html, file } = content
  const alternative = multipart('alternative', [part('text/plain', text), part('text/html', html)])
  const body = file === null ? alternative : multipart('mixed', [alternative, attachment(file)])
  return [...fields, `Subject: ${subject}`, 'MIME-Version: 1.0', body].join('\n').replaceAll('\n', '\r\n')
}

/** Returns `5 KB`, or `5 KB and some files`. */
export function nameOf({ textBytes, files }: MailShape): string {
  return `${textBytes / 1000} KB${files === 'some' ? ' and some files' : ''}`
}

function writeHtml(random: Random, subject: string, paragraphs: readonly string[]): string {
  const told = paragraphs.map((paragraph, number) => {
    const link = `https://news.example/${number}/${Math.floor(random() * 1e9).toString(36)}`
    return `<p style="margin: 0 0 12px">${wrap(paragraph, '  ')}\n  <a href="${link}">${number + 1}</a></p>`
  })
  return [
    `<!doctype html>\n<html><head><title>${subject}</title></head>`,
    '<body style="font-family: sans-serif">',
    ...told,
    '</body></html>',
  ].join('\n')
}

/** Wraps text to lines of up to 76 characters. */
function wrap(text: string, indent: string): string {
  return text.replace(/(.{1,74}\S)(?: |$)/g, `$1\n${indent}`).trimEnd()
}

function writeFile(random: Random, fileBytes: number): string {
  const words = Uint32Array.from({ length: fileBytes / 4 }, () => random() * 2 ** 32)
  return Buffer.from(words.buffer).toString('base64')
}

function multipart(kind: string, parts: readonly string[]): string {
  const boundary = `=_${kind}_4cWq1J7d2nz9sRg`
  const opened = parts.map((one) => `--${boundary}\n${one}\n`).join('')
  return `Content-Type: multipart/${kind}; boundary="${boundary}"\n\n${opened}--${boundary}--\n`
}

function part(type: string, text: string): string {
  return `Content-Type: ${type}; charset=utf-8\nContent-Transfer-Encoding: 7bit\n\n${text}\n`
}

function attachment(file: string): string {
  const head = 'Content-Type: application/pdf; name="report.pdf"\nContent-Transfer-Encoding: base64'
  const name = 'Content-Disposition: attachment; filename="report.pdf"'
  return `${head}\n${name}\n\n${file.replace(/.{76}/g, '$&\n')}`
}
