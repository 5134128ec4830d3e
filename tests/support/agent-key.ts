// Adds further keys to a test's organization, such as a key for an agent.
import { createKey, type KeyInput, unrestricted } from '../../src/flow/accounts/key.ts'

/** A key that may do everything except for the restrictions in `input`. */
export async function addKey(
  { foundation }: { foundation: Parameters<typeof createKey>[0] },
  { organizationId }: { organizationId: string },
  input: Partial<KeyInput>,
): Promise<{ keyId: string; secret: string }> {
  const { key, secret } = await createKey(foundation, {
    ...unrestricted,
    organizationId,
    name: 'another',
    ...input,
  })
  return { keyId: key.id, secret }
}
