// Pages as the build has made them: their files by name for good, and each page under a policy with a nonce of its own.
import { randomBytes } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Asset, forGood, makeAsset, sendAsset } from './asset.ts'

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

/** A file of a folder, and no way out of it. */
const fileName = /^[\w-][\w.-]*$/

export class BuiltPages {
  readonly #folder: string
  readonly #assets = new Map<string, Promise<Asset | null>>()
  readonly #pages = new Map<string, { html: string; mtimeMs: number }>()

  /** The folder need not be there. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Sends a file that bears its digest in its name; null where the build has none of that name. */
  async sendFile(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply | null> {
    const asset = fileName.test(name) ? await this.#findAsset(name) : null
    return asset && sendAsset(request, reply, asset, forGood)
  }

  /** Sends a page, which may do what `directives` say beside running what this origin serves; `notBuilt` where it is missing. */
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

  /** Read once, for its name stands for its bytes; what could not be read is tried again. */
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

  /** Read again only after another build: its name stays, and the files that it names do not. */
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

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

async function readAsset(path: string): Promise<Asset> {
  return await makeAsset(types[extname(path)] ?? 'application/octet-stream', await readFile(path))
}

/** Runs and loads what this origin serves, and nothing else; nobody may frame it. */
function policyWith(nonce: string, directives: readonly string[]): string {
  return [
    ...["default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "connect-src 'self'"],
    ...directives,
    ...["base-uri 'none'", "frame-ancestors 'none'"],
  ].join('; ')
}
