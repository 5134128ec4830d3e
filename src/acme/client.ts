// A client of one certificate authority, whose answers are bounded in size and time; loaded when it is needed.
import type { Client } from 'acme-client'

export interface Account {
  /** The URL of the authority's directory. */
  directory: string
  /** PEM. */
  key: string
}

const answerMs = 10_000
/** Ninety names of 253 characters fit many times. */
const maxAnswerBytes = 1 << 20

/** Makes the client of an account; nothing is asked yet. */
export async function createAcmeClient({ directory, key }: Account): Promise<Client> {
  // 49 MB of memory and half a second, which only the node that orders needs, and only then.
  const { Client, axios } = await import('acme-client')
  Object.assign(axios.defaults, { timeout: answerMs, maxContentLength: maxAnswerBytes, maxRedirects: 3 })
  // QUIRK: acme-client 5.4.0 asks again five times by itself, and what went wrong is then lost in a fault of its own
  // (src/axios.js). Our back-off is slower, and says why.
  axios.interceptors.request.clear()
  axios.interceptors.response.clear()
  return new Client({ directoryUrl: directory, accountKey: key })
}

/** What went wrong at the authority, or on the way there, in a line that can be stored and shown. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text
    .slice(0, 500)
    .replaceAll(/\p{Cc}+/gu, ' ')
    .toWellFormed()
}
