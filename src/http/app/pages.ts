// The built pages: their files by name, and index.html for every address that is a page of the dashboard.
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api, AppDeps } from '../api.ts'
import { type Asset, forGood, makeAsset, sendAsset } from '../document/asset.ts'
import { errorAnswer, sendError } from '../errors.ts'

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
}
/** What the build has written where a nonce belongs. */
const nonceMark = '__NONCE__'
const notBuilt =
  'The pages of the dashboard are not built: run `npm run build` where Posthorn is installed. The API works without them.\n'
/** Paths that are never a page. */
const notPages = /^\/(?:v1|app|assets|docs|openapi\.json|\.well-known)(?:\/|$)/

/** Serves files of the build, and the page to whoever asks for one by the address of a view. */
export function servePages(api: Api, { pagesFolder }: Pick<AppDeps, 'pagesFolder'>): void {
  const files = new Map<string, Promise<Asset | null>>()
  const read = (path: string) => {
    const known = files.get(path) ?? readAsset(pagesFolder, path)
    files.set(path, known)
    return known
  }
  api.get('/assets/*', { schema: { hide: true }, exposeHeadRoute: true }, async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    const names = await readdir(join(pagesFolder, 'assets')).catch(() => [] as string[])
    const asset = names.includes(name) ? await read(`assets/${name}`) : null
    return asset
      ? sendAsset(request, reply, asset, forGood)
      : sendError(reply, errorAnswer('route_not_found'))
  })
  api.setNotFoundHandler(async (request, reply) => {
    if (!isPage(request)) return sendError(reply, errorAnswer('route_not_found'))
    return await sendPage(pagesFolder, reply)
  })
}

async function readAsset(folder: string, path: string): Promise<Asset | null> {
  const bytes = await readFile(join(folder, path)).catch(() => null)
  return bytes && makeAsset(types[extname(path)] ?? 'application/octet-stream', bytes)
}

function isPage({ method, url, headers }: FastifyRequest): boolean {
  const path = url.split('?', 1)[0]!
  return method === 'GET' && (headers.accept ?? '').includes('text/html') && !notPages.test(path)
}

async function sendPage(folder: string, reply: FastifyReply): Promise<FastifyReply> {
  const html = await readFile(join(folder, 'index.html'), 'utf8').catch(() => null)
  if (html === null) return reply.code(503).header('content-type', 'text/plain; charset=utf-8').send(notBuilt)
  const nonce = randomBytes(18).toString('base64')
  reply.headers({
    'content-security-policy': policyWith(nonce),
    'content-type': 'text/html; charset=utf-8',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  })
  return reply.code(200).send(html.replaceAll(nonceMark, nonce))
}

/** Runs and loads what this origin serves, and nothing else; nobody may frame it. */
function policyWith(nonce: string): string {
  return [
    ...["default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "connect-src 'self'"],
    ...["img-src 'self' data: blob:", "font-src 'self'", "frame-src 'self'", "manifest-src 'self'"],
    ...["base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"],
  ].join('; ')
}
