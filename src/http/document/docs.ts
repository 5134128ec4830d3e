// Serves the page at /docs, which shows the OpenAPI document, tries its operations, and loads nothing from other hosts.
import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import { type Asset, forGood, makeAsset, sendAsset, untilChanged } from '../../web/asset.ts'
import type { Api } from '../api.ts'

export interface DocsPage {
  page: Asset
  script: Asset
  contentSecurityPolicy: string
}

/**
 * Serves the page to anyone. Its 4 MB of script cost 40 MB of memory, so they are loaded at the first request. After a
 * failure the next request tries again.
 */
export function serveDocs(api: Api, render: () => Promise<DocsPage> = renderDocs): void {
  let rendered: Promise<DocsPage> | undefined
  const read = () => {
    rendered ??= render().catch((error) => {
      rendered = undefined
      throw error
    })
    return rendered
  }
  api.get('/docs', { schema: { hide: true } }, async (request, reply) => {
    const { page, contentSecurityPolicy } = await read()
    reply.header('content-security-policy', contentSecurityPolicy)
    return sendAsset(request, reply, page, untilChanged)
  })
  api.get('/docs/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/docs', 308))
  api.get('/docs/script.js', { schema: { hide: true } }, async (request, reply) => {
    const { script } = await read()
    const { v } = request.query as { v?: unknown }
    return sendAsset(request, reply, script, v === script.digest ? forGood : untilChanged)
  })
}

/** The plugin's placeholder for a key, which reads like a key. */
const jokeKey = 'QUxMIFlPVVIgQkFTRSBBUkUgQkVMT05HIFRPIFVT'

/** Renders the plugin's page once, in a separate instance that never listens. */
async function renderDocs(): Promise<DocsPage> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const renderer = Fastify()
  await renderer.register(reference, {
    routePrefix: '/docs',
    configuration: {
      pageTitle: 'Posthorn API',
      url: '/openapi.json',
      authentication: { preferredSecurityScheme: 'apiKey' },
      cdn: '/docs/script.js',
      withDefaultFonts: false,
      telemetry: false,
      showDeveloperTools: 'never',
      mcp: { disabled: true },
      agent: { disabled: true },
      hideClientButton: true,
    },
  })
  const { body } = await renderer.inject('/docs/')
  const { body: code } = await renderer.inject('/docs/js/scalar.js')
  await renderer.close()
  const script = await makeAsset('text/javascript; charset=utf-8', code.replaceAll(jokeKey, 'ph_…'))
  const html = body
    // Without an icon, browsers request /favicon.ico, which does not exist.
    .replace('</title>', '</title>\n    <link rel="icon" href="data:," />')
    .replace('"/docs/script.js"', `"/docs/script.js?v=${script.digest}"`)
  const page = await makeAsset('text/html; charset=utf-8', html)
  return { page, script, contentSecurityPolicy: policyFor(html) }
}

/** Lets the page run its own scripts and connect to this origin, and nothing else. */
function policyFor(html: string): string {
  const scripts = [...html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, script]) => script!)
  const inline = scripts.filter(Boolean).map((script) => {
    return `'sha256-${createHash('sha256').update(script).digest('base64')}'`
  })
  return [
    ...["default-src 'none'", `script-src 'self' ${inline.join(' ')}`, "style-src 'self' 'unsafe-inline'"],
    ...[
      "img-src 'self' data:",
      "font-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
    ],
    "frame-ancestors 'none'",
  ].join('; ')
}
