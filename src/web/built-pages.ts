// Serves the pages of the build: its files by name, as immutable, and each page with a policy and a fresh nonce.
import { randomBytes } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Asset, forGood, makeAsset, sendAsset } from './asset.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
}
/** The build writes this text in place of a nonce. */
const nonceMark = '__NONCE__'

/** A file name without slashes and leading dots, so that it cannot lead out of its folder. */
const fileName = /^[\w-][\w.-]*$/

export class BuiltPages {
  readonly #folder: string
  readonly #assets = new Map<string, Promise<Asset | null>>()
  readonly #pages = new Map<string, { html: string; mtimeMs: number }>()

  /** The folder may be missing. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Sends a file whose name contains its digest. Returns null if the build has no file of that name. */
  async sendFile(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply | null> {
    const asset = fileName.test(name) ? await this.#findAsset(name) : null
    return asset && sendAsset(request, reply, asset, forGood)
  }

  /**
   * Sends a page, which may use the content of this origin and the permissions in `directives`. Sends `notBuilt` with
   * 503 if the page is missing.
   */
  async sendPage(
    reply: FastifyReply,
    name: string,
    { directives, notBuilt }: { directives: readonly string[]; notBuilt: string },
  ): Promise<FastifyReply> {
    const html = await this.#findPage(name)
    if (html === null)
      return reply.code(503).header('content-type', 'text/plain; charset=utf-8').send(notBuilt)
    const nonce = randomBytes(18).toString('base64')
    reply.headers({
      'content-security-policy': policyWith(nonce, directives),
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    return reply.code(200).send(html.replaceAll(nonceMark, nonce))
  }

  /** Reads each file once, because its name identifies its bytes. Retries a file that could not be read. */
  async #findAsset(name: string): Promise<Asset | null> {
    const known = this.#assets.get(name)
    if (known) return await known
    const reading = readAsset(join(this.#folder, 'assets', name)).catch((error: unknown) => {
      this.#assets.delete(name)
      if (isMissing(error)) return null
      throw error
    })
    this.#assets.set(name, reading)
    return await reading
  }

  /**
   * Reads the page again only after its file has changed: a new build keeps the page's name, but the page refers to new
   * files.
   */
  async #findPage(name: string): Promise<string | null> {
    const path = join(this.#folder, name)
    try {
      const { mtimeMs } = await stat(path)
      const known = this.#pages.get(name)
      if (known?.mtimeMs === mtimeMs) return known.html
      const html = await readFile(path, 'utf8')
      this.#pages.set(name, { html, mtimeMs })
      return html
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

export async function readAsset(path: string): Promise<Asset> {
  return await makeAsset(types[extname(path)] ?? 'application/octet-stream', await readFile(path))
}

/** A page runs and loads only content of this origin, and no site may frame it. */
function policyWith(nonce: string, directives: readonly string[]): string {
  return [
    ...["default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "connect-src 'self'"],
    ...directives,
    ...["base-uri 'none'", "frame-ancestors 'none'"],
  ].join('; ')
}
