// The sender verification of Postfix: opendkim, opendmarc and policyd-spf as Debian packages them, using our DNS.
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scope } from '../../tests/support/until.ts'
import { freePort, startChild, temporaryFolder, untilReady } from '../children.ts'
import { isListening } from '../load/smtp.ts'
import { treeOf } from '../usage.ts'
import { resolveBy, type Wrap } from './resolver.ts'

export interface Milters {
  /** Lines for Postfix's main.cf and master.cf. */
  main: string[]
  master: string[]
  pids(): number[]
}

/** The name in the Authentication-Results that the milters report. */
const authservId = 'mx.bench.invalid'
const packages = {
  '/usr/sbin/opendkim': 'opendkim',
  '/usr/sbin/opendmarc': 'opendmarc',
  '/usr/bin/policyd-spf': 'postfix-policyd-spf-python',
}
const suffixList = '/usr/share/publicsuffix/public_suffix_list.dat'

/** Starts the two milters. Postfix itself starts policyd-spf, so Postfix must be started with `wrap`. */
export async function startMilters(scope: Scope, dns: string): Promise<Milters & { wrap: Wrap }> {
  for (const [path, name] of Object.entries(packages)) {
    if (!existsSync(path)) throw new Error(`missing: ${name}, run bench/peers/install.sh`)
  }
  const folder = temporaryFolder(scope, 'milters')
  chmodSync(folder, 0o755)
  const wrap = resolveBy(dns, folder)
  writeSettings(folder, dns)
  const start = async (name: string, words: string[]) => {
    const port = await freePort()
    const child = startChild(
      scope,
      folder,
      ...wrap(`/usr/sbin/${name}`, [...words, '-p', `inet:${port}@127.0.0.1`]),
    )
    await untilReady(child, `${name} listens`, () => isListening(port))
    return { port, pid: child.pid }
  }
  const dkim = await start('opendkim', ['-f', '-x', `${folder}/opendkim.conf`])
  const dmarc = await start('opendmarc', ['-f', '-c', `${folder}/opendmarc.conf`])
  return {
    main: [
      `smtpd_milters = inet:127.0.0.1:${dkim.port}, inet:127.0.0.1:${dmarc.port}`,
      'smtpd_recipient_restrictions = check_policy_service unix:private/policyd-spf',
      'policyd-spf_time_limit = 3600',
    ],
    master: [
      `policyd-spf unix - n n - 0 spawn user=nobody argv=/usr/bin/policyd-spf ${folder}/policyd-spf.conf`,
    ],
    wrap,
    pids: () => [...treeOf(dkim.pid), ...treeOf(dmarc.pid)],
  }
}

/** Writes Debian's settings, except that loopback clients are verified too and each program trusts the one before it. */
function writeSettings(folder: string, dns: string): void {
  const nobody = '192.0.2.1'
  const files: Record<string, string[]> = {
    ignored: [nobody],
    'opendkim.conf': [
      ...['Mode v', 'AlwaysAddARHeader yes', `AuthservID ${authservId}`],
      ...[`InternalHosts csl:${nobody}`, `Nameservers ${dns}`],
    ],
    'opendmarc.conf': [
      ...[`AuthservID ${authservId}`, `TrustedAuthservIDs ${authservId}`, `IgnoreHosts ${folder}/ignored`],
      ...['SPFSelfValidate true', 'RejectFailures false', `PidFile ${folder}/opendmarc.pid`],
      ...(existsSync(suffixList) ? [`PublicSuffixList ${suffixList}`] : []),
    ],
    'policyd-spf.conf': [
      ...['debugLevel = 1', 'TestOnly = 1', 'HELO_reject = Fail', 'Mail_From_reject = Fail'],
      ...['PermError_reject = False', 'TempError_Defer = False', `skip_addresses = ${nobody}/32`],
      ...['Header_Type = AR', `Authserv_Id = ${authservId}`],
    ],
  }
  for (const [name, lines] of Object.entries(files))
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`, { mode: 0o644 })
}
