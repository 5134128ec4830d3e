// Which test file performs each changing operation by keyboard alone; tests/fences/keyboard.test.ts checks completeness.
import assert from 'node:assert/strict'

export type KeyboardFile = 'access' | 'desk' | 'mail' | 'sending' | 'settings'

/** By the file `tests/browser/keyboard-….test.ts`. `{}` is a path parameter. */
export const keyboardDeeds: Record<KeyboardFile, readonly string[]> = {
  access: [
    'DELETE /app/v1/session',
    'POST /app/v1/confirmations',
    'POST /app/v1/invitations/preview',
    'POST /app/v1/invitations/accept',
    'POST /app/v1/organizations',
    'POST /app/v1/resets',
    'POST /app/v1/resets/preview',
    'POST /app/v1/resets/complete',
    'POST /app/v1/session',
    'POST /app/v1/session/link',
    'POST /app/v1/sign-up',
    'PUT /app/v1/session/organization',
  ],
  mail: [
    'DELETE /app/v1/captured',
    'DELETE /app/v1/inboxes/{}',
    'DELETE /app/v1/messages/{}',
    'PATCH /app/v1/inboxes/{}',
    'POST /app/v1/inboxes',
    'POST /app/v1/inboxes/{}/messages',
    'POST /app/v1/threads/{}/replies',
  ],
  sending: [
    'DELETE /app/v1/domains/{}',
    'DELETE /app/v1/suppressions',
    'POST /app/v1/domains',
    'POST /app/v1/domains/{}/rotate-dkim',
    'POST /app/v1/domains/{}/verify',
    'POST /app/v1/submissions/{}/cancel',
    'POST /app/v1/suppressions',
    'POST /app/v1/suppressions/import',
    'POST /app/v1/validate',
    'POST /app/v1/validate/bulk',
  ],
  settings: [
    'DELETE /app/v1/invitations/{}',
    'DELETE /app/v1/keys/{}',
    'DELETE /app/v1/members/{}',
    'DELETE /app/v1/passkeys/{}',
    'DELETE /app/v1/sessions',
    'DELETE /app/v1/sessions/{}',
    'DELETE /app/v1/webhooks/{}',
    'PATCH /app/v1/members/{}',
    'PATCH /app/v1/organization',
    'PATCH /app/v1/person',
    'PATCH /app/v1/webhooks/{}',
    'POST /app/v1/invitations',
    'POST /app/v1/keys',
    'POST /app/v1/keys/{}/rotate',
    'POST /app/v1/passkeys',
    'POST /app/v1/passkeys/challenge',
    'POST /app/v1/passkeys/registration',
    'POST /app/v1/session/passkey',
    'POST /app/v1/webhooks',
    'POST /app/v1/webhooks/{}/deliveries/{}/replay',
    'POST /app/v1/webhooks/{}/rotate-secret',
    'POST /app/v1/webhooks/{}/test',
    'PUT /app/v1/person/password',
  ],
  desk: [
    'DELETE /desk/v1/session',
    'PATCH /desk/v1/organizations/{}',
    'PATCH /desk/v1/organizations/{}/limits',
    'POST /desk/v1/health',
    'POST /desk/v1/organizations/{}/approve',
    'POST /desk/v1/organizations/{}/cancel-queue',
    'POST /desk/v1/organizations/{}/deletion',
    'POST /desk/v1/organizations/{}/suspend',
    'POST /desk/v1/queues/{}/cancel',
    'POST /desk/v1/queues/{}/flush',
    'POST /desk/v1/queues/{}/pause',
    'POST /desk/v1/queues/{}/resume',
    'POST /desk/v1/session',
  ],
}

/** Asserts that these windows requested each operation of the file with success. */
export function assertAllDone(file: KeyboardFile, ...windows: { done: ReadonlySet<string> }[]): void {
  const done = windows.flatMap((window) => [...window.done])
  const missing = keyboardDeeds[file].filter((operation) => {
    const pattern = new RegExp(`^${operation.replaceAll('{}', '[^/]+')}$`)
    return !done.some((one) => pattern.test(one))
  })
  assert.deepEqual(missing, [], 'keyboard-deeds.ts says that these are done here')
}
