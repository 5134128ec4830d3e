// The line below a message's head: whether a received message's sender is verified, or a sent message's delivery status.
import { Link } from '@tanstack/react-router'
import { BadgeCheck, ChevronDown, ShieldAlert, ShieldQuestion } from 'lucide-react'
import { StateBadge } from '../../parts/badge.tsx'
import { classes } from '../../parts/classes.ts'
import { reading } from '../../texts/reading.ts'
import { verdicts } from '../../texts/verdicts.ts'
import type { Message } from './mail-queries.ts'

interface StandingLineProps {
  message: Message
  isDetailed: boolean
  onDetails: () => void
}

export function StandingLine({ message, isDetailed, onDetails }: StandingLineProps) {
  const { direction, delivery } = message
  return (
    <div className="-mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
      {direction === 'inbound' ? <Proof message={message} /> : <StateBadge state={delivery.status} />}
      {delivery.submissionId && (
        <Link
          to="/sending/$submissionId"
          params={{ submissionId: delivery.submissionId }}
          className="rounded-sm text-muted underline decoration-line-strong underline-offset-3 hover:text-ink"
        >
          {reading.toLife}
        </Link>
      )}
      <button
        type="button"
        aria-expanded={isDetailed}
        onClick={onDetails}
        className="flex items-center gap-1 rounded-sm text-faint hover:text-ink"
      >
        {isDetailed ? reading.hideDetails : reading.details}
        <ChevronDown size={14} aria-hidden className={classes(isDetailed && 'rotate-180')} />
      </button>
    </div>
  )
}

const looks = {
  good: { icon: BadgeCheck, color: 'text-good' },
  bad: { icon: ShieldAlert, color: 'text-bad' },
  idle: { icon: ShieldQuestion, color: 'text-muted' },
}

function Proof({ message }: { message: Message }) {
  const { tone, words } = proofOf(message)
  const { icon: Icon, color } = looks[tone]
  return (
    <span className={classes('flex min-w-0 items-center gap-1.5 font-medium', color)}>
      <Icon size={15} aria-hidden className="shrink-0" />
      <span className="min-w-0 break-words">{words}</span>
    </span>
  )
}

/** RFC 6761 6.3: names under localhost, which development uses, are not in DNS. */
const isLocal = /(?:^|\.)localhost$/i

/** Says in one sentence whether the domain in From is proved to have sent the message. */
function proofOf({ from, inboundSecurity }: Message): { tone: keyof typeof looks; words: string } {
  const domain = from.email.split('@').at(-1) || verdicts.unknownDomain
  const dmarc = inboundSecurity?.authentication.dmarc ?? 'not_evaluated'
  if (isLocal.test(domain)) return { tone: 'idle', words: verdicts.unprovable(domain) }
  if (dmarc === 'pass') return { tone: 'good', words: verdicts.proved(domain) }
  const why = verdicts.why[dmarc] ?? verdicts.why['other']!
  return { tone: dmarc === 'fail' ? 'bad' : 'idle', words: verdicts.notProved(domain, why) }
}
