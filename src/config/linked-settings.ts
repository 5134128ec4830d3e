// Settings that belong together: a certificate authority, an identity provider, a smarthost.
import { join, resolve } from 'node:path'
import type { BlobStore } from '../blobs/open-blobs.ts'
import type { CredentialSettings } from '../blobs/s3/credentials.ts'
import type { S3Address } from '../blobs/s3/s3-address.ts'
import type { RelayTarget } from '../flow/delivering/next-hop.ts'
import type { OidcSettings } from '../flow/people/oidc.ts'
import { type Environment, type Reader, SettingError } from './setting-reader.ts'
import {
  acmeDirectory,
  blobUrl,
  emailAddress,
  oidcIssuer,
  oneOf,
  relayUrl,
  withRelayTls,
  words,
} from './setting-values.ts'

/** How to write reserved characters in a URL's user and password. */
export const percent = 'with %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for % in user and password'

/** Reads the authority that issues certificates, and the address to which it may write. */
export function readAcme(reader: Reader): { directory: string; email: string } | null {
  const email = reader.read(
    'POSTHORN_ACME',
    null,
    emailAddress,
    'your email address, such as ops@example.com',
  )
  const production = 'https://acme-v02.api.letsencrypt.org/directory'
  const directory = reader.read('POSTHORN_ACME_DIRECTORY', production, acmeDirectory, production)
  if (email === null) {
    if (!reader.has('POSTHORN_ACME_DIRECTORY')) return null
    throw new SettingError('POSTHORN_ACME_DIRECTORY needs POSTHORN_ACME: set it to your email address')
  }
  if (reader.has('POSTHORN_SMTP_TLS_CERT'))
    throw new SettingError(
      'POSTHORN_ACME and POSTHORN_SMTP_TLS_CERT both provide the certificate: set only one of them',
    )
  if (!reader.has('POSTHORN_MAIL_HOST'))
    throw new SettingError(
      'POSTHORN_ACME needs POSTHORN_MAIL_HOST: set it to the public host name, such as mx.example.com',
    )
  return { directory, email }
}

/** Reads the store of blobs. Relative folders start at `folder`. */
export function readBlobStore(reader: Reader, folder: string, dataDir: string): BlobStore {
  const fallback = { folder: join(dataDir, 'blobs') }
  const store = reader.read('POSTHORN_BLOB_URL', fallback, blobUrl, blobUrlForm)
  return toBlobStore(store, (name) => reader.shared(name), folder)
}

/** How to write the address of a store of blobs. */
const blobUrlForm =
  'file:/a/folder, s3://bucket/prefix?region=eu-central-1, or s3://bucket/prefix?endpoint=https://s3.example.com'

/** Reads an address that a command got as an argument. Throws a SettingError. */
export function parseBlobStore(text: string, environment: Environment, folder: string): BlobStore {
  const store = blobUrl(text)
  if (store === null) throw new SettingError(`this is not the address of a store: write ${blobUrlForm}`)
  return toBlobStore(store, (name) => environment[name]?.trim() || null, folder)
}

/** Adds the credentials' variables to an address on S3. */
function toBlobStore(
  store: { folder: string } | { s3: S3Address },
  variable: (name: string) => string | null,
  folder: string,
): BlobStore {
  if ('folder' in store) return { folder: resolve(folder, store.folder) }
  return { ...store, credentials: readCredentials(variable) }
}

/** The variables that Amazon's own tools read. */
function readCredentials(variable: (name: string) => string | null): CredentialSettings {
  const path = variable('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI')
  return {
    accessKeyId: variable('AWS_ACCESS_KEY_ID'),
    secretAccessKey: variable('AWS_SECRET_ACCESS_KEY'),
    sessionToken: variable('AWS_SESSION_TOKEN'),
    file: variable('AWS_SHARED_CREDENTIALS_FILE'),
    profile: variable('AWS_PROFILE'),
    containerUrl: path ? `http://169.254.170.2${path}` : variable('AWS_CONTAINER_CREDENTIALS_FULL_URI'),
    containerTokenFile: variable('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'),
    instanceUrl: variable('AWS_EC2_METADATA_SERVICE_ENDPOINT'),
  }
}

/** Reads the identity provider with which people may sign in. */
export function readOidc(reader: Reader): OidcSettings | null {
  const example = 'https://id.example.com, or http:// on a loopback address'
  const issuer = reader.read('POSTHORN_OIDC_ISSUER', null, oidcIssuer, example)
  const clientId = reader.read(
    'POSTHORN_OIDC_CLIENT_ID',
    null,
    words(1_000),
    'the client id that the provider issued',
  )
  const clientSecret = reader.read(
    'POSTHORN_OIDC_CLIENT_SECRET',
    null,
    words(4_000),
    'the client secret that the provider issued',
  )
  const name = reader.read('POSTHORN_OIDC_NAME', null, words(100), 'the name of the provider, for the button')
  if (issuer && clientId && clientSecret)
    return { issuer, clientId, clientSecret, name: name ?? new URL(issuer).hostname }
  if (issuer || clientId || clientSecret || name)
    throw new SettingError(
      'POSTHORN_OIDC_ISSUER, POSTHORN_OIDC_CLIENT_ID and POSTHORN_OIDC_CLIENT_SECRET go together: set all three',
    )
  return null
}

/** Reads the smarthost, and the TLS it must have. */
export function readRelay(reader: Reader): RelayTarget | null {
  const url = `smtp://user:password@host:port, or smtps://…, ${percent}`
  const relay = reader.read('POSTHORN_RELAY_URL', null, relayUrl, url)
  const kinds = oneOf('verified', 'unverified')
  const certificate = reader.read('POSTHORN_RELAY_TLS', null, kinds, 'verified or unverified')
  return relay && certificate ? withRelayTls(relay, certificate) : relay
}
