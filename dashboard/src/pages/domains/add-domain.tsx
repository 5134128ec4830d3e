// Registers a domain and opens its page with the records to publish.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { domains } from '../../texts/domains.ts'
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
  const ascii = asciiOf(name)
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title={domains.add}
      lead={domains.addWhat}
      submit={domains.addDo}
      sending={add}
      disabled={name.trim() === ''}
      onSubmit={() => name.trim() !== '' && add.mutate()}
    >
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
    </FormDialog>
  )
}

/** Returns the name's form in DNS if it differs, else null. */
function asciiOf(name: string): string | null {
  const wanted = name.trim().replace(/\.$/, '')
  if (!/[^\x00-\x7f]/.test(wanted)) return null
  return URL.parse(`http://${wanted}/`)?.hostname ?? null
}
