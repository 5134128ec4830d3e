// The part of the api role that takes mail from SMTP clients: a listener with STARTTLS, and one with TLS from the start.
import { inRanges } from '../base/ip-address.ts'
import { listenAs } from '../config/listener.ts'
import type { ListenAddress } from '../config/setting-values.ts'
import type { KeyRing, RequestRate } from '../flow/accounts/authenticate.ts'
import type { Acceptance } from '../flow/sending/accept-send.ts'
import type { SendContents } from '../flow/sending/send-contents.ts'
import { Submissions } from '../flow/sending/submit.ts'
import type { Foundation } from '../foundation.ts'
import { answerOf } from '../http/errors.ts'
import { Reputation } from '../smtp/server/reputation.ts'
import { SmtpServer } from '../smtp/server/server.ts'
import { defaultServerLimits } from '../smtp/server/server-options.ts'
import type { Certificate } from './certificate.ts'
import { graceMs, type Part } from './part.ts'

interface SubmissionNeeds {
  acceptance: Acceptance
  contents: SendContents
  keyRing: KeyRing
  requestRate: RequestRate
}

/** The most that any organization may have. Each organization has its own limit. */
const maxRecipients = 1_000

/** Returns the listening addresses; null where the setting names none. */
export async function startSubmission(
  foundation: Foundation,
  certificate: Certificate,
  needs: SubmissionNeeds,
  parts: Part[],
): Promise<{ submission: ListenAddress | null; submissions: ListenAddress | null }> {
  const { settings, clock, log, worker } = foundation
  const clients = createSubmissions(foundation, needs)
  const peers = worker.group?.peers.submission ?? new Reputation(defaultServerLimits, { clock, log })
  const servers: SmtpServer[] = []
  parts.push({ stop: async () => void (await Promise.all(servers.map((server) => server.close(graceMs)))) })
  const listen = async (setting: string, address: ListenAddress | null, tls: 'implicit' | 'starttls') => {
    if (!address) return null
    const server = new SmtpServer({
      hostname: settings.mailHost,
      listen: address,
      maxSizeBytes: settings.smtpMaxSizeBytes,
      maxRecipients,
      secureContext: () => certificate.context(),
      isTrusted: inRanges(settings.smtpTrusted),
      peers,
      clock,
      log,
      backend: { tls, admit: (secret, ip) => clients.admit(secret, ip) },
    })
    const bound = await listenAs(setting, address, () => server.listen())
    servers.push(server)
    return bound
  }
  return {
    submission: await listen('POSTHORN_SUBMISSION', settings.submission, 'starttls'),
    submissions: await listen('POSTHORN_SUBMISSIONS', settings.submissions, 'implicit'),
  }
}

function createSubmissions(
  { clock, log, blobs }: Foundation,
  { acceptance, contents, keyRing, requestRate }: SubmissionNeeds,
): Submissions {
  return new Submissions({
    clock,
    log,
    blobs,
    acceptance,
    contents,
    authenticate: (secret, ip) => keyRing.authenticate(secret, ip),
    admit: (caller) => requestRate.admit(caller),
    describe: (failure) => answerOf(failure, { is404: false, body: null }),
  })
}
