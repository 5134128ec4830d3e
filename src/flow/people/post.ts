// The service's own post: letters to people, accepted like any other mail, from its own inbox on the managed domain.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newId, newUuid, type OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import {
  findOrganization,
  insertOrganization,
  type Limits,
  lockOwnOrganization,
} from '../../store/accounts/organizations.ts'
import { findAddressHolder, insertInbox } from '../../store/mailbox/inboxes.ts'
import type { OwnMail, OwnSendResult } from '../own-mail.ts'
import { ownOrganizationId } from '../own-organization.ts'
import type { LetterLimits } from './letter-limits.ts'
import type { Letter } from './letters.ts'

export interface PostDeps {
  db: Db
  clock: Clock
  log: Log
  managedDomain: string
  letterLimits: Pick<LetterLimits, 'admit'>
  /** The limits of the service's own organization. */
  limits: Limits
  /** Accepts a mail from the address of a living inbox. */
  sendOwn(from: string, mail: OwnMail): Promise<OwnSendResult>
}

/** The second is used if an organization had taken the first before it was reserved. */
const localParts = ['accounts', 'posthorn-accounts']

/** Sends letters to people. */
export class Post {
  readonly #deps: PostDeps
  #from: Promise<string> | null = null

  constructor(deps: PostDeps) {
    this.#deps = deps
  }

  /**
   * Accepts the letter. After that it is delivered like any mail. Does not report an address that takes no mail. Throws
   * `unavailable` if the letter cannot be accepted now. With the same `key`, a letter is accepted once.
   */
  async send(to: string, { kind, subject, text }: Letter, key: string = newUuid()): Promise<void> {
    const { sendOwn, letterLimits, log } = this.#deps
    await letterLimits.admit(kind)
    const mail = { key, to, subject, text, attachments: [] }
    const result = await sendOwn(await this.#sender(), mail)
    if (result.status === 'accepted') return
    // The inbox may have been deleted meanwhile: find it again.
    this.#from = null
    log.warn({ code: result.code }, `account email was not accepted: ${subject}`)
    if (result.status === 'later') throw new ServiceError('unavailable')
  }

  async #sender(): Promise<string> {
    this.#from ??= openOwnInbox(this.#deps)
    try {
      return await this.#from
    } catch (error) {
      this.#from = null
      throw error
    }
  }
}

/** The service's sender address. Makes its organization and inbox if they do not exist. */
async function openOwnInbox({ db, clock, managedDomain, limits }: PostDeps): Promise<string> {
  const at = clock.now()
  return await db.transaction(async (tx) => {
    await lockOwnOrganization(tx)
    if (!(await findOrganization(tx, ownOrganizationId)))
      await insertOrganization(tx, {
        id: ownOrganizationId,
        name: 'Posthorn',
        status: 'active',
        limits,
        createdAt: at,
        updatedAt: at,
      })
    for (const localPart of localParts) {
      const isOurs = await claimAddress(tx, ownOrganizationId, { localPart, domain: managedDomain, at })
      if (isOurs) return `${localPart}@${managedDomain}`
    }
    throw new Error(`all of ${localParts.join(', ')} belong to organizations at ${managedDomain}`)
  })
}

/** Security: these mails give access to accounts, so they must never be in an inbox that a customer reads. */
async function claimAddress(
  tx: Tx,
  organizationId: OrganizationId,
  { localPart, domain, at }: { localPart: string; domain: string; at: Date },
): Promise<boolean> {
  const holder = await findAddressHolder(tx, domain, localPart)
  if (holder && holder.organizationId !== organizationId) return false
  if (holder?.status === 'active') return true
  const inbox = {
    id: newId('inbox', at.getTime()),
    organizationId,
    localPart,
    domain,
    domainId: null,
    displayName: `Posthorn at ${domain}`,
    createdAt: at,
    updatedAt: at,
  }
  await insertInbox(tx, inbox, null)
  return true
}
