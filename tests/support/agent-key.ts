// Further keys of an organization that a test has, such as one for an agent.
import { createKey, type KeyInput, unrestricted } from '../../src/flow/accounts/key.ts'

/** A key that may do everything but what `input` says otherwise. */
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
