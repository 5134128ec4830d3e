// Creates a client of one certificate authority, loaded on demand, with answers bounded in size and time.
import type { Client } from 'acme-client'

export interface Account {
  /** The URL of the authority's directory. */
  directory: string
  /** PEM. */
  key: string
}

const answerMs = 10_000
/** Many times the size of 90 names of 253 characters. */
const maxAnswerBytes = 1 << 20

/** Creates the client of an account. Sends no request yet. */
export async function createAcmeClient({ directory, key }: Account): Promise<Client> {
  // acme-client takes 49 MB of memory and half a second to load, so only the node that orders loads it, and only then.
  const { Client, axios } = await import('acme-client')
  Object.assign(axios.defaults, { timeout: answerMs, maxContentLength: maxAnswerBytes, maxRedirects: 3 })
  // QUIRK: acme-client 5.4.0 retries five times by itself and then hides the cause behind an error of its own
  // (src/axios.js). Our back-off is slower and states the cause.
  axios.interceptors.request.clear()
  axios.interceptors.response.clear()
  return new Client({ directoryUrl: directory, accountKey: key })
}

/** The error at the authority or on the way there, as one line that can be stored and shown. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text
    .slice(0, 500)
    .replaceAll(/\p{Cc}+/gu, ' ')
    .toWellFormed()
}
