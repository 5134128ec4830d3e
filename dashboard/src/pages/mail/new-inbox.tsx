// The dialog that opens a new inbox.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiError, api, read } from '../../api/client.ts'
import { Select, TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { mail } from '../../texts/mail.ts'
import { limitsQuery } from './mail-queries.ts'
import { useGo } from './place.ts'

/** Refusals that concern the local part. */
const localPartCodes = ['address_taken', 'reserved_local_part']

export function NewInbox({ onClose }: { onClose: () => void }) {
  const [localPart, setLocalPart] = useState('')
  const [displayName, setDisplayName] = useState('')
  const [domainId, setDomainId] = useState('')
  const creation = useCreation(onClose)
  const submit = () =>
    creation.mutate({
      ...(localPart.trim() ? { localPart: localPart.trim() } : {}),
      ...(displayName.trim() ? { displayName: displayName.trim() } : {}),
      ...(domainId ? { domainId } : {}),
    })
  const fault = faultOf(creation.error)
  return (
    <FormDialog
      onClose={onClose}
      title={mail.newInbox}
      submit={mail.createInbox}
      sending={{ isPending: creation.isPending, error: fault.other }}
      onSubmit={submit}
    >
      <TextField
        label={mail.localPart}
        hint={mail.localPartHint}
        error={fault.localPart}
        value={localPart}
        autoComplete="off"
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => setLocalPart(event.target.value)}
      />
      <DomainChoice value={domainId} onChange={setDomainId} />
      <TextField
        label={mail.displayName}
        hint={mail.displayNameHint}
        error={fault.displayName}
        value={displayName}
        autoComplete="off"
        onChange={(event) => setDisplayName(event.target.value)}
      />
    </FormDialog>
  )
}

function useCreation(onClose: () => void) {
  const queries = useQueryClient()
  const go = useGo()
  const key = useRef('')
  return useMutation({
    mutationFn: (body: { localPart?: string; displayName?: string; domainId?: string }) => {
      // One key for each distinct form, so that a network retry opens no second inbox.
      const wanted = JSON.stringify(body)
      if (!key.current.startsWith(`${wanted}\n`)) key.current = `${wanted}\n${crypto.randomUUID()}`
      const header = { 'idempotency-key': key.current.slice(wanted.length + 1) }
      return read(api.POST('/v1/inboxes', { params: { header }, body }))
    },
    onSuccess: (inbox) => {
      void queries.invalidateQueries({ queryKey: ['inboxes'] })
      void queries.invalidateQueries({ queryKey: ['me'] })
      toast(mail.inboxCreated(inbox.address))
      onClose()
      go({ inboxId: inbox.id })
    },
  })
}

function faultOf(error: unknown) {
  if (!(error instanceof ApiError)) return { other: error }
  if (localPartCodes.includes(error.code) || error.message.startsWith('/localPart'))
    return { localPart: error.message }
  return error.message.startsWith('/displayName') ? { displayName: error.message } : { other: error }
}

function DomainChoice({ value, onChange }: { value: string; onChange: (domainId: string) => void }) {
  const access = useQuery({
    queryKey: ['domains', 'for-inboxes'],
    queryFn: () => read(api.GET('/v1/domains', { params: { query: { limit: 100 } } })),
  })
  const { data: profile } = useQuery(limitsQuery)
  const verified = (access.data?.domains ?? []).filter(({ status }) => status === 'verified')
  const left = profile?.managedStarter.remaining
  return (
    <Select
      label={mail.domain}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      hint={!value && left !== undefined ? mail.managedLeft(left) : null}
      options={[
        { value: '', label: mail.managedDomain },
        ...verified.map(({ id, domain }) => ({ value: id, label: domain })),
      ]}
    />
  )
}
