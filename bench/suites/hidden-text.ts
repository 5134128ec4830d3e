// The cost of leaving out hidden text: a mail's HTML read as tokens, as visible text, and as part of the whole mail.
import { readHtmlText } from '../../src/mail/read/html-text.ts'
import { readHtmlTokens } from '../../src/mail/read/html-tokens.ts'
import { parseMail } from '../../src/mail/read/parse.ts'
import { measureCalls } from '../in-program.ts'
import { writeContent } from '../load/mail-content.ts'
import { writeNewsletter } from '../load/newsletter.ts'
import { type Entrant, type Plan, runCase } from '../plan.ts'

const pages = {
  'mail of 5 KB': writeContent(1, { textBytes: 8_600, files: 'none' }).html,
  'newsletter of 60 KB': writeNewsletter(1, 60_000),
}

export async function benchHiddenText(plan: Plan): Promise<void> {
  for (const [name, html] of Object.entries(pages)) {
    const mail = Buffer.from(
      `Subject: ${name}\nContent-Type: text/html\n\n${html}\n`.replaceAll('\n', '\r\n'),
    )
    const entrants: Entrant<() => unknown>[] = [
      { name: 'tokens of the HTML', peer: () => readHtmlTokens(html) },
      { name: 'the text that is seen', peer: () => readHtmlText(html) },
      { name: 'the whole mail', peer: () => parseMail(mail) },
    ]
    await runCase(plan, `hidden text, ${name}, in one program`, entrants, (read) => {
      return () => measureCalls(read, plan.targetMs)
    })
  }
}
