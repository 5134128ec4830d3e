// The records to publish, in the order of need, each with its purpose and the value that DNS shows.
import { useState } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { Segments } from '../../parts/form/segments.tsx'
import { domains } from '../../texts/domains.ts'
import { type Domain, type DomainRecord, groupOf, type RecordGroup } from './domain-queries.ts'

type Names = 'short' | 'whole'
const stored = 'posthorn.recordNames'
const groups: RecordGroup[] = ['ownership', 'outbound', 'inbound', 'recommended', 'retired']

export function Records({ domain }: { domain: Domain }) {
  const [names, setNames] = useState<Names>(() =>
    localStorage.getItem(stored) === 'whole' ? 'whole' : 'short',
  )
  const choose = (next: Names) => {
    localStorage.setItem(stored, next)
    setNames(next)
  }
  const byGroup = Map.groupBy(domain.records, groupOf)
  return (
    <Card
      title={domains.records}
      lead={domains.namesHint}
      flush
      actions={
        <Segments
          label={domains.names}
          value={names}
          onChange={choose}
          options={[
            { value: 'short', label: domains.namesShort },
            { value: 'whole', label: domains.namesWhole },
          ]}
        />
      }
    >
      {groups.map((group) => {
        const records = byGroup.get(group)
        return (
          records && <Group key={group} group={group} records={records} names={names} zone={domain.domain} />
        )
      })}
    </Card>
  )
}

interface GroupProps {
  group: RecordGroup
  records: DomainRecord[]
  names: Names
  zone: string
}

function Group({ group, records, names, zone }: GroupProps) {
  const [title, why] = domains.groups[group]
  return (
    <section aria-label={title} className="border-b last:border-b-0">
      <header className="px-4 pt-4 pb-1 sm:px-5">
        <h3 className="font-semibold">{title}</h3>
        <p className="text-sm text-muted">{why}</p>
      </header>
      <ul>
        {records.map((record) => (
          <li key={`${record.type} ${record.name} ${record.value}`} className="px-4 py-3.5 sm:px-5">
            <Record record={record} names={names} zone={zone} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function needOf(record: DomainRecord): string {
  const group = groupOf(record)
  if (group === 'inbound') return domains.requiredInbound
  return record.required ? domains.required : group === 'retired' ? '' : domains.optional
}

function Record({ record, names, zone }: Pick<GroupProps, 'names' | 'zone'> & { record: DomainRecord }) {
  const [title, why] = domains.purposes[record.purpose]
  const algorithm = /^v=DKIM1;.*\bk=(\w+)/.exec(record.value)?.[1]
  return (
    <article className="grid min-w-0 gap-2.5">
      <header className="flex flex-wrap items-start justify-between gap-x-4 gap-y-1">
        <div className="min-w-0">
          <h4 className="font-medium">
            {title}
            {algorithm && ` (${domains.algorithms[algorithm] ?? algorithm})`}
          </h4>
          <p className="text-sm text-balance text-muted">{why}</p>
        </div>
        <span className="flex items-center gap-2.5">
          <span className="text-sm text-faint">{needOf(record)}</span>
          <StateBadge state={record.status} />
        </span>
      </header>
      <Values record={record} names={names} zone={zone} />
      <Observed record={record} />
    </article>
  )
}

function Values({ record, names, zone }: Pick<GroupProps, 'names' | 'zone'> & { record: DomainRecord }) {
  const name = names === 'whole' ? record.name : shorten(record.name, zone)
  return (
    <dl className="grid min-w-0 overflow-clip rounded-md border bg-sunken text-sm sm:grid-cols-[76px_minmax(0,2fr)_minmax(0,3fr)_auto]">
      <Value label={domains.type} text={record.type} />
      <Value label={domains.host} text={name} what={`${domains.host} ${name}`} />
      <Value label={domains.value} text={record.value} what={domains.value} />
      {record.priority !== null && <Value label={domains.priority} text={String(record.priority)} />}
    </dl>
  )
}

/** RFC 1035 5.1: `@` is the zone itself. */
function shorten(name: string, zone: string): string {
  return name === zone ? '@' : name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name
}

function Value({ label, text, what }: { label: string; text: string; what?: string }) {
  return (
    <div className="min-w-0 border-b px-3 py-2 last:border-b-0 sm:border-r sm:border-b-0 sm:last:border-r-0">
      <dt className="text-xs text-faint">{label}</dt>
      <dd className="flex min-w-0 items-start gap-1">
        <code className="min-w-0 flex-1 break-all">{text}</code>
        {what && (
          <span className="-my-1">
            <CopyButton text={text} what={what} />
          </span>
        )}
      </dd>
    </div>
  )
}

/** The value that DNS shows instead. */
function Observed({ record: { status, observed } }: { record: DomainRecord }) {
  if (status === 'valid' || status === 'pending') return null
  return (
    <div className="text-sm">
      <p className={status === 'error' ? 'text-muted' : 'text-wait'}>{domains.stateWhat[status]}</p>
      {status === 'mismatch' && (
        <dl className="mt-1 grid gap-x-3 sm:grid-cols-[110px_minmax(0,1fr)]">
          <dt className="text-faint">{domains.observed}</dt>
          <dd>
            {observed.length === 0 && domains.observedNothing}
            {observed.map((value) => (
              <code key={value} className="block break-all text-bad">
                {value}
              </code>
            ))}
          </dd>
        </dl>
      )}
    </div>
  )
}
