// The page at /docs: the OpenAPI document to read and to try, made here and loading nothing from anywhere else.
import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import type { Api } from './api.ts'

interface DocsPage {
  html: string
  script: Buffer
  contentSecurityPolicy: string
}

/** Serves the page to anyone. Its 4 MB of script cost 40 MB of memory to load, so nothing is loaded until someone asks. */
export function serveDocs(api: Api): void {
  let page: Promise<DocsPage> | undefined
  api.get('/docs', { schema: { hide: true }, exposeHeadRoute: true }, async (_request, reply) => {
    const { html, contentSecurityPolicy } = await (page ??= renderDocs())
    reply.headers({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
    })
    return reply.send(html)
  })
  api.get('/docs/script.js', { schema: { hide: true }, exposeHeadRoute: true }, async (_request, reply) => {
    const { script } = await (page ??= renderDocs())
    return reply.header('content-type', 'text/javascript; charset=utf-8').send(script)
  })
}

/** Has the plugin render its page once, in an instance of its own that never listens. */
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
  // Without an icon of its own a browser asks for /favicon.ico, which is not there.
  const html = body.replace('</title>', '</title>\n    <link rel="icon" href="data:," />')
  const { rawPayload: script } = await renderer.inject('/docs/js/scalar.js')
  await renderer.close()
  return { html, script, contentSecurityPolicy: policyFor(html) }
}

/** Lets the page run its own scripts and speak to this origin, and nothing else. */
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
