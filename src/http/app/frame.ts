// The empty document that shows the HTML of a mail: it runs nothing, and loads only what its policy allows.
import Type from 'typebox'
import type { Api } from '../api.ts'

const empty =
  '<!doctype html><html lang="und"><head><meta charset="utf-8"><title>Mail</title></head><body></body></html>'

/** `?images=1`: a person asked for the pictures that the mail names. */
const Query = Type.Object({ images: Type.Optional(Type.Literal('1')) }, { additionalProperties: false })

/**
 * The document is sandboxed without scripts, by its own policy and by the element that shows it. Markup that passes both
 * sanitizers still meets a document without scripts, forms, plug-ins and frames.
 */
export function serveFrame(api: Api): void {
  api.get('/app/frame', { schema: { hide: true, querystring: Query } }, async ({ query }, reply) => {
    const images = query.images ? 'data: https: http:' : 'data:'
    const policy = [
      ...["default-src 'none'", "style-src 'unsafe-inline'", `img-src ${images}`, "base-uri 'none'"],
      ...["form-action 'none'", "frame-ancestors 'self'"],
      'sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox',
    ]
    reply.headers({
      'content-security-policy': policy.join('; '),
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    return reply.send(empty)
  })
}
