// The operator turns the one-click link of a domain's mail on or off.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { changeOneClick } from '../../store/domains/domain-use.ts'
import { operator, recordAction } from '../audit.ts'

/** Throws `not_found` if no organization has proved the name. Deliveries follow within a second. */
export async function switchOneClick(
  { db, clock }: { db: Db; clock: Clock },
  name: string,
  state: 'on' | 'off',
): Promise<void> {
  await db.transaction(async (tx) => {
    const organizationId = await changeOneClick(tx, name, state)
    if (organizationId === null) throw new ServiceError('not_found', `no organization has proved ${name}`)
    const entry = {
      action: 'domain.one_click_changed',
      subject: name,
      detail: { state },
      at: clock.now(),
    } as const
    await recordAction(tx, organizationId, operator, entry)
  })
}
