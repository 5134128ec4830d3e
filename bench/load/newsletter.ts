// A newsletter as programs write them: styles for all clients, nested tables, and a preview line for the client's mail list.
import { randomOf, writeParagraphs } from './prose.ts'

const css = `body { margin: 0; padding: 0; background-color: #f4f4f4 }
table { border-collapse: collapse } img { border: 0; height: auto } p { margin: 0 0 12px }
.preview { display: none !important; visibility: hidden; font-size: 1px; max-height: 0; opacity: 0; overflow: hidden }
.title { font-family: Helvetica, Arial, sans-serif; color: #222222; font-size: 20px }
.button a { background: #00aa77; color: #ffffff; padding: 12px 24px; text-decoration: none }
.footer, .footer a { font-size: 12px; color: #888888 }
@media only screen and (max-width: 600px) { .column { width: 100% !important; display: block !important } .wide { display: none !important } }`

/** Writes a newsletter of about `bytes`. The same number gives the same newsletter. */
export function writeNewsletter(number: number, bytes: number): string {
  const paragraphs = writeParagraphs(randomOf(number), bytes)
  let rows = ''
  for (const paragraph of paragraphs) {
    if (css.length + rows.length > bytes) break
    rows += writeRow(paragraph)
  }
  return `<!doctype html><html><head><style>${css}</style></head><body style="margin: 0; background-color: #f4f4f4">
<div class="preview" style="display: none; color: #f4f4f4">Offers of this week</div>
<table width="100%" bgcolor="#f4f4f4">${rows}</table></body></html>`
}

function writeRow(paragraph: string): string {
  const cell =
    'padding: 0 24px 16px; font-family: Helvetica, Arial, sans-serif; font-size: 16px; color: #333333'
  const link = 'background-color: #00aa77; color: #ffffff; display: inline-block; padding: 12px 24px'
  return `<tr><td align="center" valign="top" class="column" style="${cell}"><table width="100%" style="max-width: 600px">
<tr><td class="title">${paragraph.slice(0, 60)}</td></tr>
<tr><td style="padding: 0"><img src="https://news.example/picture.png" width="600" alt=""><p>${paragraph}</p></td></tr>
<tr><td class="button"><a href="https://news.example/more" style="${link}">Read more</a></td></tr></table></td></tr>
`
}
