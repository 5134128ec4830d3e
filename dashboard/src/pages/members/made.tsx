// The list, in a dialog, of the keys, webhooks and invitations that end with a member's role, with the choice to keep them.
import type { QueryClient, UseQueryResult } from '@tanstack/react-query'
import { Checkbox } from '../../parts/form/field.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { made as words } from '../../texts/members.ts'
import type { Made, Role } from './queries.ts'

/** Refetches the members and everything that may have ended with a member's role. */
export async function refreshMade(queries: QueryClient): Promise<void> {
  for (const first of ['members', 'keys', 'webhooks']) await queries.invalidateQueries({ queryKey: [first] })
}

/** Up to this many names of each kind are listed. The others are only counted. */
const maxNames = 5

/** Returns the member's creations that `nextRole` may not make. Null: the person is no longer a member. */
function endingWith({ keys, webhooks, invitations }: Made, nextRole: Role | null): Made {
  if (nextRole === 'owner') return { keys: [], webhooks: [], invitations: [] }
  if (nextRole === 'member') return { keys: [], webhooks: [], invitations }
  return { keys, webhooks, invitations }
}

interface MadeChoiceProps {
  query: UseQueryResult<Made>
  isSelf: boolean
  nextRole: Role | null
  isEnding: boolean
  onChange: (isEnding: boolean) => void
}

export function MadeChoice({ query, isSelf, nextRole, isEnding, onChange }: MadeChoiceProps) {
  return (
    <Loaded query={query}>
      {(made) => {
        const ending = endingWith(made, nextRole)
        const total = ending.keys.length + ending.webhooks.length + ending.invitations.length
        if (total === 0) return null
        return (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-3 rounded-md border px-4 py-3 text-ink">
            <Checkbox
              label={words.end(ending, isSelf ? words.yours : words.theirs)}
              hint={isEnding ? words.endHint : words.keepHint}
              checked={isEnding}
              onChange={onChange}
            />
            <MadeList made={ending} />
          </div>
        )
      }}
    </Loaded>
  )
}

function MadeList({ made: { keys, webhooks, invitations } }: { made: Made }) {
  const kinds = [
    { title: words.keys, names: keys.map(({ id, name }) => ({ id, name })) },
    { title: words.webhooks, names: webhooks.map(({ id, url }) => ({ id, name: url })) },
    { title: words.invitations, names: invitations.map(({ id, email }) => ({ id, name: email })) },
  ].filter(({ names }) => names.length > 0)
  return (
    <dl className="grid grid-cols-[minmax(0,1fr)] gap-2">
      {kinds.map(({ title, names }) => (
        <div key={title}>
          <dt className="text-sm text-faint">{title}</dt>
          <dd>
            <ul>
              {names.slice(0, maxNames).map(({ id, name }) => (
                <li key={id} className="truncate" title={name}>
                  {name}
                </li>
              ))}
            </ul>
            {names.length > maxNames && <p className="text-faint">{words.others(names.length - maxNames)}</p>}
          </dd>
        </div>
      ))}
    </dl>
  )
}
