// Independent verifiers of DKIM signatures: mailauth, opendkim, dkimpy, Mail::DKIM.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** TXT records by name, as `<selector>._domainkey.<domain>`. */
export type DkimRecords = Record<string, string>

export interface DkimJudge {
  name: string
  /** False if Debian's version supports RSA only. */
  knowsEd25519: boolean
  /** Returns for each message whether all of its signatures verify. */
  verify(messages: Buffer[], records: DkimRecords): Promise<boolean[]>
}

interface MailauthResult {
  results: { status: { result: string } }[]
}
const { dkimVerify } = createRequire(import.meta.url)('mailauth/lib/dkim/verify') as {
  dkimVerify: (message: Buffer, options: object) => Promise<MailauthResult>
}

export const mailauth: DkimJudge = {
  name: 'mailauth',
  knowsEd25519: true,
  verify: (messages, records) =>
    Promise.all(
      messages.map(async (message) => {
        const { results } = await dkimVerify(message, { resolver: async (name: string) => [[records[name]]] })
        return results.length > 0 && results.every(({ status }) => status.result === 'pass')
      }),
    ),
}

const opendkim: DkimJudge = {
  name: 'opendkim',
  knowsEd25519: true,
  async verify(messages, records) {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-opendkim-'))
    try {
      const keys = Object.entries(records).map(([name, text]) => `${name} ${text}\n`)
      writeFileSync(join(folder, 'keys'), keys.join(''))
      writeFileSync(join(folder, 'conf'), `TestPublicKeys ${folder}/keys\n`)
      const paths = messages.map((message, index) => {
        writeFileSync(join(folder, `${index}.eml`), message)
        return join(folder, `${index}.eml`)
      })
      const words = ['-x', `${folder}/conf`, '-t', paths.join(','), '-v', '-v']
      const { stdout } = spawnSync('opendkim', words, { encoding: 'utf8', maxBuffer: 1 << 26 })
      // The results of each message come before the line that names its file.
      const pieces = stdout.split(/^opendkim: (.+?): .*$/m)
      return paths.map((path) => {
        const report = pieces[pieces.indexOf(path) - 1] ?? ''
        const results = [...report.matchAll(/\tdkim=(\w+)/g)].map(([, result]) => result)
        return results.length > 0 && results.every((result) => result === 'pass')
      })
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
}

const dkimpy: DkimJudge = {
  name: 'dkimpy',
  knowsEd25519: true,
  // Debian's Python has dkimpy as a package. Another Python earlier on the path may not.
  verify: async (messages, records) => askScript('/usr/bin/python3', 'dkim-dkimpy.py', messages, records),
}

const mailDkim: DkimJudge = {
  name: 'Mail::DKIM',
  knowsEd25519: false,
  verify: async (messages, records) => askScript('perl', 'dkim-mail-dkim.pl', messages, records),
}

function askScript(command: string, script: string, messages: Buffer[], records: DkimRecords): boolean[] {
  const input = JSON.stringify({ records, messages: messages.map((message) => message.toString('base64')) })
  const options = { input, encoding: 'utf8', maxBuffer: 1 << 24 } as const
  return JSON.parse(spawnSync(command, [join(import.meta.dirname, script)], options).stdout)
}

/** The verifiers installed here. One line reports the missing ones, which are a failure under CI. */
export function findJudges(): DkimJudge[] {
  const probes: [DkimJudge, string, string[]][] = [
    [opendkim, 'opendkim', ['-V']],
    [dkimpy, '/usr/bin/python3', ['-c', 'import dkim, nacl.signing']],
    [mailDkim, 'perl', ['-MMail::DKIM::Verifier', '-e', '']],
  ]
  const judges = [mailauth]
  for (const [judge, command, args] of probes) {
    if (spawnSync(command, args).status === 0) {
      judges.push(judge)
      continue
    }
    if (process.env.CI) throw new Error(`${judge.name} is missing`)
    console.log(`${judge.name} is missing: DKIM signatures are judged without it`)
  }
  return judges
}
