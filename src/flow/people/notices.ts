// Mails people about every change to how they sign in, so that they notice a change that they did not make.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { changeLetter } from './letters.ts'
import type { Post } from './post.ts'
import type { PageAddress } from './sign-up.ts'

/** The IP address of a change, and the base address of the links in mails. */
export interface ChangeSite {
  ip: string
  pages: PageAddress
}

/** Mails a notice of the change. Must be called after the commit. If the letter is not accepted, the post only logs it. */
export async function mailChange(
  { clock, post }: { clock: Clock; post: Post },
  email: string,
  change: string,
  { ip, pages }: ChangeSite,
): Promise<void> {
  const letter = changeLetter(change, { at: clock.now(), ip, link: `${pages}/reset` })
  try {
    await post.send(email, letter)
  } catch (error) {
    // The change is committed, so the caller must not report a failure.
    if (!(error instanceof ServiceError)) throw error
  }
}
