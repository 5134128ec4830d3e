// Suppresses one address.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { toast } from '../../parts/toasts.ts'
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
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title={suppressions.add}
      lead={suppressions.addWhat}
      submit={suppressions.addDo}
      sending={add}
      disabled={email.trim() === ''}
      onSubmit={() => add.mutate()}
    >
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
    </FormDialog>
  )
}
