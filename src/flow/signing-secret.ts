// Webhook signing secrets at rest: sealed for one endpoint, opened for its calls.
import type { WebhookId } from '../base/ids.ts'
import type { SecretBox } from '../base/secret-box.ts'

const purpose = 'webhook-secret'

export function sealSigningSecret(secretBox: SecretBox, webhook: WebhookId, secret: string): Buffer {
  return secretBox.seal(purpose, secret, webhook)
}

export function openSigningSecret(secretBox: SecretBox, webhook: WebhookId, sealed: Buffer): string {
  return secretBox.open(purpose, sealed, webhook).toString()
}
