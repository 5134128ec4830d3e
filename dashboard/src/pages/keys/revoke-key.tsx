// Revokes a key at once, after its name was typed.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { keys } from '../../texts/keys.ts'
import type { Key } from './queries.ts'

export function useRevoke(keyId: string, onDone: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => read(api.DELETE('/v1/keys/{keyId}', { params: { path: { keyId } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['keys', 'list'] })
      onDone()
    },
  })
}

export function RevokeKey({ row, onClose }: { row: Key; onClose: () => void }) {
  const revoke = useRevoke(row.id, () => {
    toast(keys.revokedToast)
    onClose()
  })
  return (
    <Confirm
      onClose={onClose}
      title={keys.revokeTitle}
      deed={keys.revokeDeed}
      change={() => revoke.mutateAsync()}
      word={row.name}
    >
      <p>{keys.revokeWhat}</p>
      {row.lastUsedAt && (
        <p className="mt-2">
          {keys.revokeUsed} <Time value={row.lastUsedAt} />.
        </p>
      )}
    </Confirm>
  )
}
