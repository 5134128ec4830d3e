// Suppresses one address.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { toast } from '../../parts/toasts.ts'
import { parts } from '../../texts/parts.ts'
import { suppressions } from '../../texts/suppressions.ts'

export function AddSuppression({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const queries = useQueryClient()
  const add = useMutation({
    mutationFn: () => read(api.POST('/v1/suppressions', { body: { email: email.trim() } })),
    onSuccess: async (suppression) => {
      toast(suppressions.added(suppression.email))
      setEmail('')
      onClose()
      await queries.invalidateQueries({ queryKey: ['suppression'] })
      await queries.invalidateQueries({ queryKey: ['suppressions'] })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button
        variant="primary"
        type="submit"
        form="add-suppression"
        busy={add.isPending}
        disabled={email.trim() === ''}
      >
        {suppressions.addDo}
      </Button>
    </>
  )
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={suppressions.add}
      lead={suppressions.addWhat}
      footer={footer}
    >
      <form id="add-suppression" onSubmit={submit} className="grid gap-4">
        <TextField
          label={suppressions.email}
          value={email}
          inputMode="email"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          placeholder="nobody@example.com"
          onChange={(event) => setEmail(event.target.value)}
        />
        <ErrorNote error={add.error} />
      </form>
    </Dialog>
  )
}
