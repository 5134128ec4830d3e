// The doctor's check of the secret key: finds a key change that did not finish.
import { readKeyFile } from '../../flow/secrets/key-file.ts'
import { findSealing, isFormer } from '../../flow/secrets/secret-key.ts'
import type { Foundation } from '../../foundation.ts'
import { readKeyState } from '../../store/secret-keys.ts'
import { type Check, ok, warning } from './checks.ts'

const name = 'secret key'

export async function checkSecretKey({ db, settings }: Pick<Foundation, 'db' | 'settings'>): Promise<Check> {
  const file = settings.secretKeyFile
  const state = await readKeyState(db)
  const keys = (await readKeyFile(file)) ?? []
  const sealing = findSealing(state, keys)
  const others = keys.filter((key) => !sealing?.equals(key))
  if (others.some((key) => isFormer(state, key)))
    return warning(name, `${file} still holds a former key`, 'run posthorn secret rotate, which removes it')
  return others.length > 0
    ? warning(
        name,
        `${file} holds a second key, which seals nothing yet`,
        'run posthorn secret rotate, which continues with it',
      )
    : ok(name, `${file} holds the key of this database`)
}
