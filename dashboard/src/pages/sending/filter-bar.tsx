// The filters of the list of sends, all kept in the page's address so that a view can be saved and shared.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { ApiError, api, read } from '../../api/client.ts'
import { Button } from '../../parts/form/button.tsx'
import { Select, TextField } from '../../parts/form/field.tsx'
import { sending } from '../../texts/sending.ts'
import { states } from '../../texts/states.ts'
import { type Filters, hasFilters, type Period, statuses } from './filters.ts'

interface FilterBarProps {
  filters: Filters
  onChange: (filters: Filters) => void
}

export function FilterBar({ filters, onChange }: FilterBarProps) {
  const words: Record<string, string> = states
  const period = (filters.period ?? (filters.since || filters.until ? 'custom' : 'all')) as Period
  return (
    <search aria-label={sending.filters} className="mb-4 grid grid-cols-2 items-start gap-3 lg:flex">
      <div className="lg:w-44">
        <Select
          label={sending.status}
          value={filters.status ?? ''}
          onChange={(event) => onChange({ ...filters, status: event.target.value || undefined })}
          options={[
            { value: '', label: sending.allStates },
            ...statuses.map((value) => ({ value, label: words[value]! })),
          ]}
        />
      </div>
      <div className="lg:w-44">
        <Select
          label={sending.period}
          value={period}
          onChange={(event) => onChange({ ...filters, ...periodOf(event.target.value) })}
          options={Object.entries(sending.periods).map(([value, label]) => ({ value, label }))}
        />
      </div>
      {period === 'custom' && <Between filters={filters} onChange={onChange} />}
      <div className="col-span-2 grid min-w-0 grid-cols-2 gap-3 lg:flex-1 lg:grid-cols-[176px_minmax(0,1fr)]">
        <AddressFilter filters={filters} onChange={onChange} />
      </div>
      {hasFilters(filters) && (
        <div className="col-span-2 lg:pt-6.5">
          <Button variant="quiet" icon={X} onClick={() => onChange({})}>
            {sending.clear}
          </Button>
        </div>
      )}
    </search>
  )
}

/** One search field: for a recipient's address, or for the address of the inbox that sent. */
function AddressFilter({ filters, onChange }: FilterBarProps) {
  const [isSender, setIsSender] = useState(filters.inbox !== undefined)
  return (
    <>
      <Select
        label={sending.searchBy}
        value={isSender ? 'inbox' : 'recipient'}
        options={[
          { value: 'recipient', label: sending.recipient },
          { value: 'inbox', label: sending.inbox },
        ]}
        onChange={(event) => {
          setIsSender(event.target.value === 'inbox')
          if (filters.inbox || filters.recipient)
            onChange({ ...filters, inbox: undefined, recipient: undefined })
        }}
      />
      {isSender ? (
        <InboxField key={filters.inbox} filters={filters} onChange={onChange} />
      ) : (
        <RecipientField key={filters.recipient} filters={filters} onChange={onChange} />
      )}
    </>
  )
}

function periodOf(value: string): Filters {
  return { period: value === 'all' ? undefined : value, since: undefined, until: undefined }
}

function Between({ filters, onChange }: FilterBarProps) {
  return (
    <>
      {(['since', 'until'] as const).map((end) => (
        <div key={end} className="lg:w-50">
          <TextField
            label={sending[end]}
            type="datetime-local"
            value={filters[end] ?? ''}
            onChange={(event) =>
              onChange({ ...filters, period: 'custom', [end]: event.target.value || undefined })
            }
          />
        </div>
      ))}
    </>
  )
}

/** Only whole addresses can be searched, so the filter applies when the input is complete. */
function RecipientField({ filters, onChange }: FilterBarProps) {
  const [text, setText] = useState(filters.recipient ?? '')
  const [isWrong, setIsWrong] = useState(false)
  const take = (event?: FormEvent) => {
    event?.preventDefault()
    const wanted = text.trim()
    setIsWrong(wanted !== '' && !/^[^\s@]+@[^\s@]+$/.test(wanted))
    if (wanted === (filters.recipient ?? '')) return
    if (wanted === '' || /^[^\s@]+@[^\s@]+$/.test(wanted))
      onChange({ ...filters, recipient: wanted || undefined })
  }
  return (
    <form onSubmit={take}>
      <TextField
        label={sending.recipient}
        type="search"
        inputMode="email"
        autoComplete="off"
        placeholder="ada@example.com"
        hint={sending.addressHint}
        value={text}
        error={isWrong ? sending.recipientWrong : null}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => take()}
      />
    </form>
  )
}

function InboxField({ filters, onChange }: FilterBarProps) {
  const queries = useQueryClient()
  const { data: known } = useInbox(filters.inbox)
  const [typed, setTyped] = useState<string | null>(null)
  const text = typed ?? known?.address ?? ''
  const named = namedQuery(text)
  const { data: found = [], isFetched } = useQuery({
    ...named,
    enabled: typed !== null && text.trim() !== '',
  })
  const choose = (value: string, inboxes: typeof found) => {
    const inbox = inboxes.find(({ address }) => address === value.trim().toLowerCase())
    if (inbox) onChange({ ...filters, inbox: inbox.id })
    else if (value.trim() === '' && filters.inbox) onChange({ ...filters, inbox: undefined })
  }
  /** Enter may come before the answer to the typed text, so this waits for it. */
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const inboxes = text.trim() === '' ? [] : await queries.ensureQueryData(named)
    choose(inboxes.length === 1 ? inboxes[0]!.address : text, inboxes)
  }
  const isUnknown = typed !== null && isFetched && text.trim() !== '' && found.length === 0
  return (
    <form onSubmit={(event) => void submit(event)}>
      <TextField
        label={sending.inbox}
        type="search"
        autoComplete="off"
        list="sender-inboxes"
        placeholder="hello@example.com"
        hint={sending.addressHint}
        value={text}
        error={isUnknown ? sending.inboxUnknown : null}
        onChange={(event) => {
          setTyped(event.target.value)
          choose(event.target.value, found)
        }}
      />
      <datalist id="sender-inboxes">
        {found.map(({ id, address }) => (
          <option key={id} value={address} />
        ))}
      </datalist>
    </form>
  )
}

const namedQuery = (text: string) =>
  queryOptions({
    queryKey: ['inboxes', 'named', text],
    queryFn: async () =>
      (await read(api.GET('/v1/inboxes', { params: { query: { q: text, limit: 8 } } }))).inboxes,
  })

function useInbox(inboxId: string | undefined) {
  return useQuery({
    queryKey: ['inbox', inboxId],
    queryFn: () => read(api.GET('/v1/inboxes/{inboxId}', { params: { path: { inboxId: inboxId! } } })),
    enabled: inboxId !== undefined,
    retry: (count, error) => !(error instanceof ApiError) && count < 2,
  })
}
