// The doctor's check of Rspamd: whether it answers, and refuses the test mail that every spam filter refuses.
import { silentLog } from '../../base/log.ts'
import type { Settings } from '../../config/settings.ts'
import { Rspamd } from '../../scan/rspamd.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'

const name = 'Rspamd'
const pattern = 'XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X'

export async function checkRspamd({ rspamd: address, mailHost }: Settings): Promise<Check> {
  if (!address) return skipped(name, 'POSTHORN_RSPAMD is unset: received mail has no spam score')
  const rspamd = new Rspamd(address, { log: silentLog, mtaName: mailHost })
  try {
    const version = await rspamd.version()
    const verdict = await rspamd.check(Buffer.from(`Subject: posthorn doctor\r\n\r\n${pattern}\r\n`), {
      remoteIp: '127.0.0.1',
      helo: 'localhost',
      hostname: null,
      queueId: 'doctor',
      from: '',
      recipients: ['postmaster@localhost'],
    })
    if (verdict.status === 'unavailable') throw new Error(verdict.reason)
    if (verdict.action === 'reject') return ok(name, `${version} answers`)
    return warning(
      name,
      `${version} answers, but its action for the test mail GTUBE is "${verdict.action}"`,
      'check that its gtube_patterns and its reject action are turned on',
    )
  } catch (error) {
    const mend =
      'check that Rspamd runs, and that POSTHORN_RSPAMD is right, with the password of a controller'
    return failed(name, `check failed: ${(error as Error).message}`, mend)
  } finally {
    await rspamd.close()
  }
}
