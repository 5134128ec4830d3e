// The desk's operations as its pages call them; their types are those of the server's own schemas.
import { ApiError } from '../api/client.ts'

let changeToken: string | null = null
let whenClosed: () => void = () => {}

/** What every change must carry from now on; it belongs to the session. */
export function setChangeToken(token: string | null): void {
  changeToken = token
}

/** Called when an answer says that the session has ended. */
export function onClosed(run: () => void): void {
  whenClosed = run
}

interface Asked {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  body?: object
}

/** The body of a success; throws ApiError otherwise. `path` is what follows /desk/v1. */
export async function ask<Body>(path: string, { method = 'GET', body }: Asked = {}): Promise<Body> {
  const response = await fetch(`/desk/v1${path}`, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(method !== 'GET' && changeToken !== null && { 'x-posthorn-token': changeToken }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = response.status === 204 ? undefined : await response.json().catch(() => undefined)
  if (response.ok) return answer as Body
  const refusal = new ApiError(response, answer)
  if (refusal.code === 'session_required') whenClosed()
  throw refusal
}
