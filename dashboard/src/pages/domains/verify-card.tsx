// The check of a domain's records: whether the domain may send and receive, and which records are missing.
import { CircleCheck, CircleDashed, CircleX, RefreshCw } from 'lucide-react'
import { useRef } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { duration } from '../../parts/duration.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { domains } from '../../texts/domains.ts'
import { countFound, type Domain } from './domain-queries.ts'
import { useVerification, type Verification } from './verification.ts'

const icons = { verified: CircleCheck, pending: CircleDashed, failed: CircleX }
const colors = { verified: 'text-good', pending: 'text-faint', failed: 'text-bad' }

export function VerifyCard({ domain }: { domain: Domain }) {
  const verification = useVerification(domain.id)
  const mayChange = useMay('change')
  const checkButton = useRef<HTMLButtonElement>(null)
  /** Moves the focus, because the pressed button disappears. */
  const stop = () => {
    verification.stop()
    checkButton.current?.focus()
  }
  return (
    <Card
      title={domains.capabilities}
      actions={
        mayChange && (
          <Button
            ref={checkButton}
            variant="primary"
            size="small"
            icon={RefreshCw}
            busy={verification.isChecking}
            onClick={verification.check}
          >
            {domains.verify}
          </Button>
        )
      }
    >
      <div className="grid gap-4 sm:grid-cols-2">
        {(['outbound', 'inbound'] as const).map((use) => (
          <Capability key={use} domain={domain} use={use} />
        ))}
      </div>
      <Progress verification={{ ...verification, stop }} />
    </Card>
  )
}

function Capability({ domain, use }: { domain: Domain; use: 'outbound' | 'inbound' }) {
  const { status, reasons, checkedAt } = domain.capabilities[use]
  const Icon = icons[status]
  return (
    <section className="flex gap-3 rounded-md border bg-sunken px-4 py-3.5">
      <Icon size={20} aria-hidden className={`mt-0.5 shrink-0 ${colors[status]}`} />
      <div className="min-w-0">
        <h3 className="flex flex-wrap items-center gap-2 font-medium">
          {domains.can[use].title}
          <StateBadge state={status} />
        </h3>
        <p className="mt-1 text-sm text-balance text-muted">{domains.can[use][status]}</p>
        {reasons.length > 0 && (
          <ul className="mt-1.5 grid list-disc gap-0.5 pl-4 text-sm break-words text-ink">
            {reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        )}
        <p className="mt-1.5 text-sm text-faint">
          {domains.checked}: {checkedAt ? <Time value={checkedAt} /> : domains.neverChecked}
        </p>
      </div>
    </section>
  )
}

function Progress({
  verification: { isChecking, found, error, nextInMs, stop },
}: {
  verification: Verification
}) {
  const counts = found && countFound(found)
  return (
    <div className="text-sm empty:hidden">
      <p role="status" className="mt-4 text-muted empty:hidden">
        {isChecking && domains.verifying}
        {!isChecking &&
          counts &&
          (counts.found === counts.all ? domains.verified : domains.verifyFound(counts.found, counts.all))}
      </p>
      {nextInMs !== null && !isChecking && (
        <p className="mt-2 flex flex-wrap items-center gap-2">
          <span className="numbers text-muted">{domains.recheckIn(duration(nextInMs))}</span>
          <Button variant="quiet" size="small" onClick={stop}>
            {domains.recheckStop}
          </Button>
        </p>
      )}
      {error != null && (
        <div className="mt-3">
          <ErrorNote error={error} />
        </div>
      )}
    </div>
  )
}
