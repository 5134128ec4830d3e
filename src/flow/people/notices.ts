// Every change of how somebody signs in is mailed to them, so that a change that was not theirs is found.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { changeLetter } from './letters.ts'
import type { Post } from './post.ts'
import type { PageAddress } from './sign-up.ts'

/** Where a change came from, and where the links of mails lead. */
export interface ChangeSite {
  ip: string
  pages: PageAddress
}

/**
 * Mails that the change was made; call it after the commit. A letter that is not accepted undoes nothing: the post logs it.
 */
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
    // The change holds, so its caller must not be answered that it failed.
    if (!(error instanceof ServiceError)) throw error
  }
}
