// Webhook signing secrets at rest: sealed for one endpoint, opened for its calls.
import type { WebhookId } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'

export const signingPurpose = 'webhook-secret'

export function sealSigningSecret(secretBox: SecretBox, webhook: WebhookId, secret: string): Buffer {
  return secretBox.seal(signingPurpose, secret, webhook)
}

export function openSigningSecret(secretBox: SecretBox, webhook: WebhookId, sealed: Buffer): string {
  return secretBox.open(signingPurpose, sealed, webhook).toString()
}
