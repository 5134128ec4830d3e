// The lines that `posthorn serve` prints once it is ready.
import { existsSync } from 'node:fs'
import type { Listening } from '../app.ts'
import { formatAddress } from '../config/setting-values.ts'
import { holdWords, releaseMend, type Settings } from '../config/settings.ts'
import type { Foundation } from '../foundation.ts'
import { builtInWords } from '../scan/built-in.ts'
import { notBuiltWords } from '../web/pages-folder.ts'

/** Development details for the person who started the service. */
export interface Development {
  /** The secret of the key, only at the first start. */
  secret: string | null
  /** A token that signs in once; null if the organization was deleted. */
  signInToken: string | null
}

/** `elsewhere`: this node does not have the role `dashboard`. */
export type Pages = 'built' | 'missing' | 'elsewhere'

/** Lists the listeners, the setup, and the next step. */
export function banner(
  { settings, hold }: Pick<Foundation, 'settings' | 'hold'>,
  listening: Listening,
  { development, pages }: { development: Development | null; pages: Pages },
): string {
  const { http, https, operator, smtp, submission, submissions } = listening
  const lines = ['', 'Posthorn is ready.', '']
  if (http)
    lines.push(`  API       http://${formatAddress(http)}    documentation: /guide, /docs and /openapi.json`)
  if (https)
    lines.push(`  HTTPS     https://${formatAddress(https)}    the same API; ${certificateWords(settings)}`)
  if (smtp) lines.push(`  SMTP      ${formatAddress(smtp)}    receives mail for ${settings.managedDomain}`)
  if (submission)
    lines.push(`  Submit    ${formatAddress(submission)}    sends mail of SMTP clients, with STARTTLS`)
  if (submissions)
    lines.push(`  Submit    ${formatAddress(submissions)}    the same, with TLS from the start`)
  lines.push(
    `  Operator  http://${formatAddress(operator)}    /healthz, /readyz, /metrics; to open the desk: posthorn operator link`,
  )
  lines.push(`  Delivery  ${deliveryWords[settings.delivery]}`)
  if (settings.isDevelopment && !settings.clamd) lines.push(`  Scanning  ${builtInWords}`)
  if (settings.workers > 1)
    lines.push(`  Workers   ${settings.workers} processes under a supervisor; posthorn nodes lists them`)
  if (hold)
    lines.push(
      `  HELD      restored from a backup of ${hold.takenAt.toISOString()}: ${holdWords};`,
      `            ${releaseMend}`,
    )
  if (pages === 'missing') lines.push(`  Pages     ${notBuiltWords}`)
  if (!settings.isDevelopment) lines.push('', ...nextSteps(settings, listening, pages))
  if (development && http) lines.push('', ...firstSteps(settings, formatAddress(http), development, pages))
  return `${lines.join('\n')}\n`
}

function certificateWords({ acme, smtpTls, mailHost }: Settings): string {
  if (acme) return `certificate by ACME (see posthorn certificate show)`
  return smtpTls ? `certificate from ${smtpTls.certFile}` : `self-signed certificate for ${mailHost}`
}

const deliveryWords = {
  direct: 'direct: to the mail servers of each domain',
  relay: 'relay: through the smarthost of POSTHORN_RELAY_URL',
  capture: 'capture: nothing leaves this machine; mail for other domains is captured here',
}

/** Outside development, the start creates no organization: the operator checks the setup and makes the first one. */
function nextSteps({ publicUrl, isSignUpOpen }: Settings, { http }: Listening, pages: Pages): string[] {
  const base = publicUrl ?? (http && `http://${formatAddress(http)}`)
  const signUp =
    base && isSignUpOpen && pages === 'built'
      ? [
          '',
          `  People sign up at ${base}/sign-up; approve their organizations at the desk: posthorn operator link`,
        ]
      : []
  return [
    '  Next:',
    '',
    '  posthorn doctor                              checks the setup and shows what is missing',
    '  posthorn org create --name Acme --active     creates an organization; posthorn key create creates its key',
    ...signUp,
  ]
}

function firstSteps(
  { dataDir }: Settings,
  http: string,
  { secret, signInToken }: Development,
  pages: Pages,
): string[] {
  const page = `http://${http}/sign-in#${signInToken}`
  const signIn =
    signInToken && pages === 'built'
      ? [
          '  Open the dashboard, signed in (this link works once; each start prints a new one):',
          `  ${page}`,
          '',
        ]
      : []
  const key = secret
    ? [`  Your API key, stored in ${dataDir}/development-key:`, `  ${secret}`]
    : [keptKeyWords(`${dataDir}/development-key`)]
  const call = [
    `  curl -X POST http://${http}/v1/inboxes \\`,
    `    -H "x-api-key: $(cat ${dataDir}/development-key)" \\`,
    `    -H 'content-type: application/json' -d '{"localPart":"hello"}'`,
  ]
  return [...signIn, ...key, '', '  Create your first inbox:', '', ...call]
}

/** A copy restored from a backup lacks this file. */
function keptKeyWords(file: string): string {
  return existsSync(file)
    ? `  Your API key is in ${file}`
    : `  ${file} is missing. Create a key with posthorn key create, and store it there`
}
