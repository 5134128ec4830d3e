// One destination queue: the reason for its state, and its waiting mail.

import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { LoadedPage } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Queue as Shown } from '../client.ts'
import { useQueue } from '../queries.ts'
import { Deliveries } from './deliveries.tsx'
import { QueueDeeds } from './queue-deeds.tsx'
import { QueueState } from './queue-state.tsx'

const { queue: words, queues: shared } = desk
const crumbs = [{ label: desk.pages.queues, to: '/queues' }]

export function Queue() {
  const { queue = '' } = useParams({ strict: false }) as { queue?: string }
  const [offset, setOffset] = useState(0)
  const query = useQueue(queue, offset)
  return (
    <LoadedPage query={query} title={queue} crumbs={crumbs}>
      {(shown) => (
        <Page
          title={shown.key}
          badge={<QueueState queue={shown} />}
          lead={shared.special[shown.key]}
          crumbs={crumbs}
          actions={<QueueDeeds queue={shown} />}
        >
          <div className="grid gap-5">
            <Facts queue={shown} />
            <Deliveries queue={shown} offset={offset} onOffset={setOffset} />
          </div>
        </Page>
      )}
    </LoadedPage>
  )
}

function Facts({ queue }: { queue: Shown }) {
  const { waiting, onWire, notBefore, oldestDueAt, lastFault, lastFaultAt, failures, owner } = queue
  const next = notBefore ?? oldestDueAt
  const fault = lastFault && (
    <span className="grid gap-0.5">
      <span className="break-words">{lastFault}</span>
      <span className="text-sm text-faint">
        {failures > 0 && `${shared.failures(failures)} · `}
        {lastFaultAt && <Time value={lastFaultAt} />}
      </span>
    </span>
  )
  return (
    <Card>
      <DefinitionList
        items={[
          [shared.waiting, waiting.toLocaleString('en')],
          [shared.onWire, onWire.toLocaleString('en')],
          [shared.next, next && queue.state !== 'paused' ? <Time key="next" value={next} /> : desk.none],
          [words.owner, owner === null ? words.noOwner : words.ownerNode(owner)],
          [shared.fault, fault || desk.none],
        ]}
      />
    </Card>
  )
}
