// `npm run test:fuzz -- hidden`: reads mails full of hidden text, checks their `text`, and times mails of three sizes.
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { parseMail } from '../../../src/mail/read/parse.ts'
import { faultsOf, type HiddenMail, hiddenMail } from '../../support/hidden-mail.ts'

const help = `usage: npm run test:fuzz -- hidden [--mails N] [--seed N]
  --mails  so many are made and read (10000)
  --seed   makes the same mails again`

const { values } = parseArgs({
  options: {
    mails: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    help: { type: 'boolean', default: false },
  },
})
const [mails, seed] = [Number(values.mails), Number(values.seed)]
if (values.help || !(mails > 0) || !Number.isInteger(seed)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

const sizesKb = [16, 64, 256]
const maxShown = 5
/** Maximum ratio of CPU time per KB between a page and one a quarter of its size. */
const mostSlower = 2

const rawOf = ({ html }: HiddenMail) =>
  Buffer.from(`Subject: x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html.replaceAll('\n', '\r\n')}`)

const property = fc.property(hiddenMail(), (mail) => {
  const faults = faultsOf(mail, parseMail(rawOf(mail)).text)
  if (faults.length > 0) throw new Error(faults.join('; '))
})

const totals = { visible: 0, hidden: 0, bytes: 0, failed: 0 }
for (const mail of fc.sample(hiddenMail(), { numRuns: mails, seed })) {
  const raw = rawOf(mail)
  const faults = faultsOf(mail, parseMail(raw).text)
  totals.visible += mail.visible.length
  totals.hidden += mail.hidden.length
  totals.bytes += raw.length
  if (faults.length > 0 && totals.failed++ < maxShown) console.log(`✖ ${faults.join('; ')}\n${mail.html}\n`)
}
console.log(`seed       ${seed}`)
console.log(`mails      ${mails}, ${Math.round(totals.bytes / 1000)} KB`)
console.log(`words      ${totals.visible} visible, ${totals.hidden} hidden`)
console.log(`failures   ${totals.failed}`)
if (totals.failed > 0) {
  const { counterexample } = await fc.check(property, { numRuns: mails, seed })
  console.log(`smallest   ${counterexample?.[0]?.html}`)
}

const speeds = sizesKb.map((kilobytes) => ({ kilobytes, microseconds: timePerKb(kilobytes) }))
for (const { kilobytes, microseconds } of speeds)
  console.log(`${String(kilobytes).padEnd(4)}KB     ${microseconds.toFixed(1)} µs of processor time per KB`)
const isLinear = speeds.at(-1)!.microseconds <= mostSlower * speeds[0]!.microseconds
console.log(isLinear ? 'linear' : `✖ not linear: more than ${mostSlower} times as long per KB`)
process.exitCode = totals.failed === 0 && isLinear ? 0 : 1

/** Returns the fastest of five readings of a mail of about this size, because other load only adds time. */
function timePerKb(kilobytes: number): number {
  const raw = largeMail(kilobytes * 1000)
  const took = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    for (let times = 0; times < 256 / kilobytes; times++) parseMail(raw)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / ((256 / kilobytes) * (raw.length / 1000))
  })
  return Math.min(...took)
}

/** Returns a mail with the bodies of many mails in sequence, each with its own rules. */
function largeMail(bytes: number): Buffer {
  let html = ''
  const bodies = fc.sample(hiddenMail(), { numRuns: Math.ceil(bytes / 300), seed })
  for (const [at, mail] of bodies.entries()) {
    if (html.length >= bytes) break
    html += mail.html
      .replace(/<!doctype html><html><body>|<\/body><\/html>/g, '')
      .replace(/\bk(\d+)\b/g, `k$1n${at}`)
  }
  return rawOf({ html: `<!doctype html>${html.slice(0, bytes)}`, visible: [], hidden: [] })
}
