// Registers a domain, and opens its page with the records to publish.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { domains } from '../../texts/domains.ts'
import { parts } from '../../texts/parts.ts'
import { domainQuery, domainsQuery } from './domain-queries.ts'

export function AddDomain({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [name, setName] = useState('')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const add = useMutation({
    mutationFn: () => read(api.POST('/v1/domains', { body: { domain: name } })),
    onSuccess: async (domain) => {
      queries.setQueryData(domainQuery(domain.id).queryKey, domain)
      onClose()
      setName('')
      await navigate({ to: '/domains/$domainId', params: { domainId: domain.id } })
      await queries.invalidateQueries({ queryKey: domainsQuery.queryKey })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() !== '') add.mutate()
  }
  const ascii = asciiOf(name)
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button
        variant="primary"
        type="submit"
        form="add-domain"
        busy={add.isPending}
        disabled={name.trim() === ''}
      >
        {domains.addDo}
      </Button>
    </>
  )
  return (
    <Dialog open={open} onClose={onClose} title={domains.add} lead={domains.addWhat} footer={footer}>
      <form id="add-domain" onSubmit={submit} className="grid gap-4">
        <TextField
          label={domains.addField}
          hint={ascii ? domains.addAscii(ascii) : domains.addHint}
          value={name}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          placeholder="example.com"
          onChange={(event) => setName(event.target.value)}
        />
        <ErrorNote error={add.error} />
      </form>
    </Dialog>
  )
}

/** How DNS writes it, where that differs. */
function asciiOf(name: string): string | null {
  const wanted = name.trim().replace(/\.$/, '')
  if (!/[^\x00-\x7f]/.test(wanted)) return null
  return URL.parse(`http://${wanted}/`)?.hostname ?? null
}
