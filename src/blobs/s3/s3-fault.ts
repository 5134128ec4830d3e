// Failed calls to S3: their words for operators, and whether a repetition may succeed.

interface FaultOptions {
  mayPass: boolean
  /** The store does not accept the credentials, which may have expired. */
  isForCredentials?: boolean
}

/** A call that failed. The message continues a sentence that begins with the store's name. */
export class S3Fault extends Error {
  readonly mayPass: boolean
  readonly isForCredentials: boolean

  constructor(message: string, { mayPass, isForCredentials = false }: FaultOptions, cause?: unknown) {
    super(message, { cause })
    this.mayPass = mayPass
    this.isForCredentials = isForCredentials
  }
}

/** Returns the fault of a connection. Throws an error that is none: a bug of ours has no code. */
export function ofTransport(error: unknown): S3Fault {
  const { code = '', name } = error as NodeJS.ErrnoException
  if (code === '' && name !== 'TimeoutError') throw error
  return new S3Fault(`does not answer (${code || name})`, { mayPass: true }, error)
}

/** Codes of refusals that a new attempt may avoid, most of them because bytes were lost on the way. */
const passing = new Set([
  ...['BadDigest', 'IncompleteBody', 'InternalError', 'OperationAborted', 'RequestTimeout', 'SlowDown'],
  ...['ServiceUnavailable', 'XAmzContentSHA256Mismatch', 'XAmzContentChecksumMismatch'],
])
const ofCredentials = new Set(['ExpiredToken', 'InvalidAccessKeyId', 'InvalidToken', 'TokenRefreshRequired'])
const mends: Record<string, string> = {
  AccessDenied: ': these credentials may not do that',
  InvalidAccessKeyId: ': it does not know these credentials',
  NoSuchBucket: ': create the bucket, or correct POSTHORN_BLOB_URL',
  PermanentRedirect: ': the bucket is in another region',
  AuthorizationHeaderMalformed: ': the bucket is in another region',
  RequestTimeTooSkewed: ": this machine's clock differs too much from the store's",
  SignatureDoesNotMatch: ': the secret access key is wrong',
}

/** Returns the fault of an answer with this status and body. */
export function toFault(status: number, text: string): S3Fault {
  // Security: the store's own words could be anything, so only a code is repeated.
  const code = /^[A-Za-z0-9]{1,64}$/.exec(textOf(text, 'Code') ?? '')?.[0] ?? ''
  const isForCredentials = ofCredentials.has(code)
  const mayPass =
    isForCredentials || passing.has(code) || [408, 429].includes(status) || (status >= 500 && status !== 501)
  return new S3Fault(`answered ${status} ${code}`.trim() + (mends[code] ?? ''), { mayPass, isForCredentials })
}

/** Returns the text of the first element with this name. S3's answers have no attributes and no nesting of equal names. */
export function textOf(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return found === undefined ? null : decoded(found)
}

/** Returns the contents of all elements with this name. */
export function elementsOf(xml: string, name: string): string[] {
  return xml.split(`<${name}>`).flatMap((text, index) => {
    const end = text.indexOf(`</${name}>`)
    return index === 0 || end < 0 ? [] : text.slice(0, end)
  })
}

const entities: Record<string, string> = {
  quot: '"',
  apos: "'",
  lt: '<',
  gt: '>',
  amp: '&',
  '#34': '"',
  '#39': "'",
}

function decoded(text: string): string {
  return text.replaceAll(/&(#?\w{1,6});/g, (whole, name: string) => entities[name] ?? whole)
}
