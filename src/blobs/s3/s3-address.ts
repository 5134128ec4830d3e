// The address of a store on S3, as `POSTHORN_BLOB_URL` has it: s3://bucket/prefix?endpoint=…&region=…&pathStyle=….

export interface S3Address {
  bucket: string
  /** Precedes every object's key. Empty, or ends with a slash. */
  prefix: string
  /** An origin, such as `https://s3.eu-central-1.amazonaws.com`. */
  endpoint: string
  region: string
  /** The bucket is in the path (`https://endpoint/bucket/key`), otherwise in the host name. */
  isPathStyle: boolean
}

const parameters = new Set(['endpoint', 'region', 'pathStyle'])
const bucketForm = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const regionForm = /^[a-z0-9-]{1,64}$/
/** Characters that need no encoding in a path or in a signature. */
const prefixForm = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\/){0,8}$/

/**
 * Returns null if the text is not such an address. Without an endpoint, a region is needed, and the store is Amazon's. With an
 * endpoint, the region is `us-east-1` and the bucket is in the path, unless the address says otherwise.
 */
export function parseS3Address(text: string): S3Address | null {
  if (!text.startsWith('s3://') || !URL.canParse(text)) return null
  const url = new URL(text)
  const { host: bucket, searchParams, username, password, hash } = url
  if (!bucketForm.test(bucket) || username || password || hash) return null
  const given = Object.fromEntries(searchParams)
  if ([...searchParams.keys()].length !== Object.keys(given).length) return null
  if (!Object.keys(given).every((name) => parameters.has(name))) return null
  const path = url.pathname.replace(/^\//, '').replace(/\/$/, '')
  const prefix = path === '' ? '' : `${path}/`
  const { region = given['endpoint'] === undefined ? '' : 'us-east-1', pathStyle } = given
  if (!prefixForm.test(prefix) || !regionForm.test(region)) return null
  const endpoint = originOf(given['endpoint'] ?? `https://s3.${region}.amazonaws.com`)
  if (endpoint === null || !['true', 'false', undefined].includes(pathStyle)) return null
  // A bucket with a dot has no valid certificate as a host name.
  const isPathStyle = pathStyle
    ? pathStyle === 'true'
    : given['endpoint'] !== undefined || bucket.includes('.')
  return { bucket, prefix, endpoint, region, isPathStyle }
}

function originOf(text: string): string | null {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return null
  const { origin, pathname, search, username, password, hash } = new URL(text)
  return pathname === '/' && !search && !username && !password && !hash ? origin : null
}

/** The store's name for operators, without the parameters. */
export function nameOf({ bucket, prefix }: S3Address): string {
  return `s3://${bucket}/${prefix}`.replace(/\/$/, '')
}

/** The URL of an object, or of the bucket if `key` is empty. */
export function urlOf({ bucket, prefix, endpoint, isPathStyle }: S3Address, key: string): URL {
  const url = new URL(endpoint)
  if (!isPathStyle) url.host = `${bucket}.${url.host}`
  const path = key === '' ? '' : prefix + key
  url.pathname = isPathStyle ? `/${bucket}${path && `/${path}`}` : `/${path}`
  return url
}
