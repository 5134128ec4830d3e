// What the doctor makes of the secret key: whether it is being changed, and whether its file holds one that is over.
import { checkOf } from '../../base/secret-box.ts'
import { readKeyFile } from '../../flow/key-file.ts'
import { isUnderWay } from '../../flow/rotate-secret-key.ts'
import type { Foundation } from '../../foundation.ts'
import { readKeyState } from '../../store/secret-keys.ts'
import { type Check, ok, warning } from './checks.ts'

const name = 'secret key'

export async function checkSecretKey({ db, settings }: Pick<Foundation, 'db' | 'settings'>): Promise<Check> {
  const file = settings.secretKeyFile
  const state = await readKeyState(db)
  const keys = (await readKeyFile(file)) ?? []
  const mend = 'posthorn secret rotate goes on with it'
  if (isUnderWay(state))
    return warning(name, 'it is being changed: something is sealed with the former one', mend)
  if (state.next)
    return warning(name, 'it is being changed: the next one waits until every node has it', mend)
  const ended = keys.filter((key) => state.former.some(({ check }) => check.equals(checkOf(key))))
  return ended.length > 0
    ? warning(name, `${file} still holds a former one`, 'posthorn secret rotate takes it out')
    : ok(name, `${file} holds the one of this database`)
}
