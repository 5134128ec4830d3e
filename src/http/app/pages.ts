// Serves the built pages: their files by name, and index.html for every address that is a page of the dashboard.
import type { FastifyRequest } from 'fastify'
import { BuiltPages } from '../../web/built-pages.ts'
import type { Api, AppDeps } from '../api.ts'
import { errorAnswer, sendError } from '../errors.ts'

const directives = [
  ...["img-src 'self' data: blob:", "font-src 'self'", "frame-src 'self'", "manifest-src 'self'"],
  "form-action 'self'",
]
const notBuilt =
  'The pages of the dashboard are not built: run `npm run build` where Posthorn is installed. The API works without them.\n'
/** Paths that are never a page. */
const notPages = /^\/(?:v1|app|assets|docs|guide|llms(?:-full)?\.txt|mcp|openapi\.json|\.well-known)(?:\/|$)/

/** Serves files of the build, and the page for every address of a view. */
export function servePages(api: Api, { pagesFolder }: Pick<AppDeps, 'pagesFolder'>): void {
  const pages = new BuiltPages(pagesFolder)
  api.get('/assets/*', { schema: { hide: true } }, async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    return (await pages.sendFile(request, reply, name)) ?? sendError(reply, errorAnswer('route_not_found'))
  })
  api.setNotFoundHandler(async (request, reply) => {
    if (!isPage(request)) return sendError(reply, errorAnswer('route_not_found'))
    return await pages.sendPage(reply, 'index.html', { directives, notBuilt })
  })
}

/**
 * Whether the request gets a page. `/` is a page even for clients such as curl, which accept anything. All other pages
 * are only for clients that accept HTML.
 */
function isPage({ method, url, headers: { accept = '*/*' } }: FastifyRequest): boolean {
  const path = url.split('?', 1)[0]!
  const takesPages = accept.includes('text/html') || (path === '/' && accept.includes('*/*'))
  return (method === 'GET' || method === 'HEAD') && takesPages && !notPages.test(path)
}
