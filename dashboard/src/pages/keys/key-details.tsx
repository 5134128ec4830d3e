// The details of one key, except its secret, and the actions on it.
import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Ban, RefreshCw } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { Badge } from '../../parts/badge.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { count } from '../../parts/numbers.ts'
import { Time } from '../../parts/time.tsx'
import { useMay, useSession } from '../../shell/session.ts'
import { keys, scopeWords } from '../../texts/keys.ts'
import { canRotate, keyTones, stateOf } from './key-state.ts'
import type { Key } from './queries.ts'
import { TimeLeft } from './time-left.tsx'

interface KeyDetailsProps {
  row: Key
  onClose: () => void
  onRotate: () => void
  onRevoke: () => void
}

export function KeyDetails({ row, onClose, onRotate, onRevoke }: KeyDetailsProps) {
  const mayChange = useMay('change')
  const hasServerKeys = useSession().organization?.serverKeys ?? false
  const state = stateOf(row, Date.now())
  const footer = mayChange && state !== 'revoked' && (
    <>
      <Button variant="danger" icon={Ban} onClick={onRevoke}>
        {keys.revoke}
      </Button>
      <Button
        icon={RefreshCw}
        refusal={canRotate(row, hasServerKeys) ? undefined : keys.operatorOnly}
        onClick={onRotate}
      >
        {keys.rotate}
      </Button>
    </>
  )
  return (
    <Dialog open onClose={onClose} title={row.name} lead={keys.kinds[row.kind]} width="large" footer={footer}>
      <DefinitionList
        items={[
          [
            keys.columns.state,
            <Badge key="s" tone={keyTones[state]}>
              {keys.states[state]}
            </Badge>,
          ],
          [keys.mark, row.kind === 'agent' ? keys.marked : keys.unmarked],
          [keys.may, <Scopes key="m" scopes={row.scopes} />],
          [keys.reaches, row.inboxIds ? <Inboxes key="i" ids={row.inboxIds} /> : keys.allInboxes],
          [keys.from, row.allowedIps?.join(', ') ?? keys.anywhere],
          [keys.sendMode, keys.sendModes[row.sendMode].label],
          [keys.writesTo, row.allowedRecipientDomains?.join(', ') ?? keys.anyone],
          [keys.firstMessages, row.confirmNewRecipients ? keys.byPerson : keys.byKey],
          [keys.rateTitle, keys.perMinute(count(row.requestsPerMinute))],
          [keys.columns.expires, row.expiresAt ? <TimeLeft key="e" until={row.expiresAt} /> : keys.never],
          [keys.columns.lastUsed, row.lastUsedAt ? <Time key="l" value={row.lastUsedAt} /> : keys.unused],
          [keys.createdAt, <Time key="c" value={row.createdAt} />],
          ...(row.madeBy ? [[keys.madeBy, <Maker key="b" {...row.madeBy} />] as const] : []),
          ...(row.revokedAt ? [[keys.revokedAt, <Time key="r" value={row.revokedAt} />] as const] : []),
          [
            keys.id,
            <code key="id" className="break-all">
              {row.id}
            </code>,
          ],
        ]}
      />
    </Dialog>
  )
}

function Maker({ name, email }: NonNullable<Key['madeBy']>) {
  return name ? (
    <>
      {name} <span className="text-faint">{email}</span>
    </>
  ) : (
    email
  )
}

function Scopes({ scopes }: { scopes: readonly string[] }) {
  if (scopes.includes('*')) return keys.everything
  return (
    <ul>
      {scopes.map((scope) => (
        <li key={scope}>
          {scopeWords[scope]?.label ?? scope} <code className="text-faint">{scope}</code>
        </li>
      ))}
    </ul>
  )
}

/** Shows inboxes by their addresses. A deleted inbox appears by its id. */
function Inboxes({ ids }: { ids: readonly string[] }) {
  const found = useQueries({
    queries: ids.slice(0, mostInboxes).map((inboxId) => ({
      queryKey: ['keys', 'inbox', inboxId],
      queryFn: () => read(api.GET('/v1/inboxes/{inboxId}', { params: { path: { inboxId } } })),
    })),
  })
  return (
    <ul>
      {ids.map((id, index) => (
        <li key={id} className="break-all">
          {found[index]?.data ? (
            <Link to="/mail/$inboxId" params={{ inboxId: id }} className="underline-offset-3 hover:underline">
              {found[index].data.address}
            </Link>
          ) : (
            <code className="text-faint">{id}</code>
          )}
        </li>
      ))}
    </ul>
  )
}

const mostInboxes = 20
