// Serves the one-click links of mail (RFC 8058): a POST unsubscribes, and a GET shows a page with a button.
import { ServiceError } from '../base/errors.ts'
import { within } from '../base/within.ts'
import { createUnsubscribing, readLink } from '../flow/reports/unsubscribe.ts'
import type { Api, HttpDeps } from './api.ts'
import { errorAnswer, sendError } from './errors.ts'

const answerMs = 10_000
const maxBodyBytes = 4_096
const path = '/unsubscribe/:token'

type Deps = Pick<HttpDeps, 'db' | 'clock' | 'secretBox'>

/** Anyone with a link may use it, without a key. */
export function serveUnsubscribe(api: Api, deps: Deps): void {
  api.register(async (scope: Api) => {
    // RFC 8058 3.1: the body is a form, in either of its encodings.
    scope.removeAllContentTypeParsers()
    const options = { parseAs: 'string', bodyLimit: maxBodyBytes } as const
    scope.addContentTypeParser('*', options, (_request, body, done) => done(null, body))
    addPage(scope, deps)
    addPost(scope, deps)
  })
}

// RFC 8058 3.2: a GET must not unsubscribe, because scanners of mail follow links.
function addPage(api: Api, { secretBox }: Deps): void {
  api.get(path, { schema: { hide: true } }, async ({ params }, reply) => {
    const { token } = params as { token: string }
    if (readLink(secretBox, token) === null) return sendError(reply, errorAnswer('route_not_found'))
    return reply
      .headers({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
      .send(pageOf(question))
  })
}

function addPost(api: Api, { db, clock, secretBox }: Deps): void {
  const unsubscribing = createUnsubscribing({ db, clock })
  api.post(path, { schema: { hide: true } }, async ({ params, body, headers }, reply) => {
    const { token } = params as { token: string }
    const recipient = readLink(secretBox, token)
    if (recipient === null) return sendError(reply, errorAnswer('route_not_found'))
    // RFC 8058 3.1: the body says so. Another POST, such as a prefetch, changes nothing.
    if (!isOneClick(body)) return sendError(reply, errorAnswer('invalid_request'))
    const late = () => Promise.reject(new ServiceError('unavailable'))
    await within(answerMs, unsubscribing.add(recipient), late)
    if (!headers.accept?.includes('text/html')) return reply.code(200).send()
    return reply
      .headers({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
      .send(pageOf('<p>You are unsubscribed from this sender.</p>'))
  })
}

function isOneClick(body: unknown): boolean {
  if (typeof body !== 'string') return false
  return /(?:^|&)List-Unsubscribe=One-Click(?:&|\s*$)/.test(body) || multipart.test(body)
}

const multipart = /name="?List-Unsubscribe"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\nOne-Click\r\n/

const policy = "default-src 'none'; form-action 'self'; frame-ancestors 'none'"

const question = `<form method="post"><p>Do you want no more mail from this sender?</p>
<button name="List-Unsubscribe" value="One-Click">Unsubscribe</button></form>`

function pageOf(content: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Unsubscribe</title><body>${content}</body></html>`
}
