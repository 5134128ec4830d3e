// The pages of the desk, as the build has made them.
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { type Asset, forGood, makeAsset, sendAsset } from '../../http/document/asset.ts'
import { errorAnswer, sendError } from '../../http/errors.ts'
import type { Desk, DeskDeps } from './deps.ts'

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** What the build has written where a nonce belongs. */
const noncePlace = '__NONCE__'
const notBuilt =
  'The pages of the desk are not built: run `npm run build` where Posthorn is installed. The command line does all that they do.\n'

/** Views have no addresses of their own: what comes behind the # is the page's. */
export function serveDeskPages(desk: Desk, { settings: { pagesFolder } }: Pick<DeskDeps, 'settings'>): void {
  const files = new Map<string, Promise<Asset>>()
  desk.get('/assets/:name', async (request, reply) => {
    const { name } = request.params as { name: string }
    const names: string[] = await readdir(join(pagesFolder, 'assets')).catch(() => [])
    if (!names.includes(name)) return sendError(reply, errorAnswer('route_not_found'))
    const asset = files.get(name) ?? readAsset(join(pagesFolder, 'assets', name))
    files.set(name, asset)
    return sendAsset(request, reply, await asset, forGood)
  })
  desk.get('/', async (_request, reply) => {
    const html = await readFile(join(pagesFolder, 'desk.html'), 'utf8').catch(() => null)
    if (html === null)
      return reply.code(503).header('content-type', 'text/plain; charset=utf-8').send(notBuilt)
    const nonce = randomBytes(18).toString('base64')
    reply.headers({
      'content-security-policy': policyWith(nonce),
      'content-type': 'text/html; charset=utf-8',
    })
    return reply.send(html.replaceAll(noncePlace, nonce))
  })
}

async function readAsset(path: string): Promise<Asset> {
  return await makeAsset(types[extname(path)] ?? 'application/octet-stream', await readFile(path))
}

/** Runs and loads what this origin serves, and nothing else; nobody may frame it. */
function policyWith(nonce: string): string {
  return [
    ...["default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "connect-src 'self'"],
    ...["img-src 'self' data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; ')
}
