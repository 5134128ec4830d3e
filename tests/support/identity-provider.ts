// An identity provider over HTTP on this machine: discovery, keys, the authorization code flow with PKCE, RS256 tokens.
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './until.ts'

export interface Claims {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
  [name: string]: unknown
}

export interface IdentityProvider {
  issuer: string
  clientId: string
  clientSecret: string
  /** The next person to sign in, and the claims of the token. */
  claims: Claims
  /** If set, the user-info endpoint returns these claims instead of the token's. */
  userInfo: Claims | null
  /** Changes a token before it is signed, or its header or its signature after. */
  bend(token: { header: Record<string, unknown>; payload: Record<string, unknown> }): void
  breakSignature: boolean
  /** The number of token requests so far. */
  exchanges: number
}

interface Grant {
  challenge: string
  nonce: string
  redirect: string
  claims: Claims
}

const base64url = (value: object | Buffer) =>
  (Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))).toString('base64url')

export async function startIdentityProvider(scope: Scope): Promise<IdentityProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const grants = new Map<string, Grant>()
  const provider: IdentityProvider = {
    issuer: '',
    clientId: 'posthorn',
    clientSecret: 'a secret of the provider & more',
    claims: { sub: 'nobody' },
    userInfo: null,
    breakSignature: false,
    exchanges: 0,
    bend: () => {},
  }
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'first', alg: 'RS256', use: 'sig' }
  const sign = ({ nonce, claims }: Grant) => {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const payload = {
      iss: provider.issuer,
      aud: provider.clientId,
      iat: nowSeconds,
      exp: nowSeconds + 300,
      nonce,
      ...claims,
    }
    const token = { header: { alg: 'RS256', kid: 'first' }, payload }
    provider.bend(token)
    const signed = `${base64url(token.header)}.${base64url(token.payload)}`
    const signature = createSign('sha256').update(signed).sign(privateKey)
    if (provider.breakSignature) signature[10]! ^= 1
    return `${signed}.${base64url(signature)}`
  }
  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, provider.issuer)
    if (url.pathname === '/.well-known/openid-configuration')
      return json(response, 200, metadata(provider.issuer))
    if (url.pathname === '/keys') return json(response, 200, { keys: [jwk] })
    if (url.pathname === '/authorize') return authorize(provider, grants, url, response)
    if (url.pathname === '/userinfo') return json(response, 200, provider.userInfo ?? provider.claims)
    if (url.pathname === '/token') return await exchange(provider, grants, sign, request, response)
    json(response, 404, {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  scope.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return provider
}

function metadata(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    userinfo_endpoint: `${issuer}/userinfo`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
  }
}

/** Signs in the person of `claims` without a prompt, and redirects the browser back. */
function authorize(
  { clientId, claims }: IdentityProvider,
  grants: Map<string, Grant>,
  { searchParams: query }: URL,
  response: ServerResponse,
): void {
  const isWellFormed =
    query.get('client_id') === clientId &&
    query.get('response_type') === 'code' &&
    query.get('code_challenge_method') === 'S256' &&
    query.get('scope')!.split(' ').includes('openid')
  if (!isWellFormed) {
    json(response, 400, { error: 'invalid_request' })
    return
  }
  const code = randomBytes(16).toString('hex')
  const redirect = query.get('redirect_uri')!
  grants.set(code, { challenge: query.get('code_challenge')!, nonce: query.get('nonce')!, redirect, claims })
  const back = new URL(redirect)
  back.searchParams.set('code', code)
  back.searchParams.set('state', query.get('state')!)
  response.writeHead(302, { location: back.href }).end()
}

async function exchange(
  provider: IdentityProvider,
  grants: Map<string, Grant>,
  sign: (grant: Grant) => string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  provider.exchanges++
  let text = ''
  for await (const chunk of request) text += chunk
  const form = new URLSearchParams(text)
  if (form.get('client_id') !== provider.clientId || form.get('client_secret') !== provider.clientSecret)
    return json(response, 401, { error: 'invalid_client' })
  const grant = grants.get(form.get('code') ?? '')
  grants.delete(form.get('code') ?? '')
  // RFC 7636 4.6: the digest of the verifier is the challenge.
  const challenge = createHash('sha256')
    .update(form.get('code_verifier') ?? '')
    .digest('base64url')
  if (!grant || grant.challenge !== challenge || grant.redirect !== form.get('redirect_uri'))
    return json(response, 400, { error: 'invalid_grant' })
  json(response, 200, {
    access_token: randomBytes(16).toString('hex'),
    token_type: 'bearer',
    expires_in: 300,
    id_token: sign(grant),
  })
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
