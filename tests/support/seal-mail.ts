// Adds one ARC set per call to a mail, right or wrong, by plain code after RFC 8617.
import { createHash, sign } from 'node:crypto'
import { type SigningPlan, signatureOf } from './sign-mail.ts'

export interface SealingPlan extends SigningPlan {
  instance: number
  /** cv=, if it must differ from the default. */
  status?: string
  /** The results in the set, from the server's name on. */
  results: string
  /** More tags of the message signature; null removes one. */
  messageTags?: Record<string, string | null>
}

/** The mail, Latin-1 with CRLF, with one set in front. Its other sets are the earlier ones. */
export function sealMail(mail: string, plan: SealingPlan): string {
  const { instance, status = instance === 1 ? 'none' : 'pass' } = plan
  const results = `ARC-Authentication-Results: i=${instance}; ${plan.results}\r\n`
  const message = signatureOf(results + mail, {
    ...plan,
    fieldName: 'ARC-Message-Signature',
    tags: { v: null, i: String(instance), ...plan.messageTags },
  })
  const seal = `ARC-Seal: i=${instance}; a=${plan.algorithm}; cv=${status}; d=${plan.domain}; s=${plan.selector}; t=1; b=`
  const covered = [...setsOf(mail), results, message].map(relaxed).join('') + relaxed(seal).trimEnd()
  const bytes = Buffer.from(covered, 'latin1')
  const signature =
    plan.algorithm === 'ed25519-sha256'
      ? sign(null, createHash('sha256').update(bytes).digest(), plan.privateKey)
      : sign('sha256', bytes, plan.privateKey)
  return `${seal}${signature.toString('base64')}\r\n${message}${results}${mail}`
}

const kinds = ['arc-authentication-results', 'arc-message-signature', 'arc-seal']

/** The fields of the sets in the order in which seals cover them. */
function setsOf(mail: string): string[] {
  const fields = mail.split('\r\n\r\n')[0]!.split(/\r\n(?![ \t])/)
  const found = fields.flatMap((field) => {
    const kind = kinds.indexOf(field.slice(0, field.indexOf(':')).toLowerCase())
    const instance = Number(/\bi=(\d+)/.exec(field)?.[1])
    return kind < 0 ? [] : [{ field, order: instance * kinds.length + kind }]
  })
  return found.sort((a, b) => a.order - b.order).map(({ field }) => field)
}

function relaxed(field: string): string {
  const colon = field.indexOf(':')
  const value = field
    .slice(colon + 1)
    .replaceAll('\r\n', '')
    .replace(/[ \t]+/g, ' ')
  return `${field.slice(0, colon).toLowerCase()}:${value.trim()}\r\n`
}
