// Serves the guide at /guide: the pages that VitePress has built, to anyone, and their texts for language models.
import { readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Asset, forGood, sendAsset, untilChanged } from '../../web/asset.ts'
import { isMissing, readAsset } from '../../web/built-pages.ts'
import type { Api } from '../api.ts'

/** `npm run build` writes the guide to this folder. */
export const guideFolder = join(import.meta.dirname, '../../../site/dist')

const notBuilt =
  'The guide is not built: run `npm run build` where Posthorn is installed. The API works without it.\n'
/** The time between two checks for a new build. */
const checkMs = 1_000

/** The pages have no inline scripts and styles, so that they need no exception. */
const contentSecurityPolicy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

interface Build {
  /** Changes with each build. */
  mtimeMs: number
  /** The files of the build by the path of their URL. No other file is read. */
  files: ReadonlyMap<string, string>
  /** Each file is read and compressed once, because anyone may ask for it. All of them have 10 MB. */
  assets: Map<string, Promise<Asset>>
}

/** Serves the files of the folder, which may be missing. */
export function serveGuide(api: Api, folder = guideFolder): void {
  const guide = new Guide(folder)
  const hidden = { schema: { hide: true } }
  for (const name of ['llms.txt', 'llms-full.txt'])
    api.get(`/${name}`, hidden, (request, reply) => guide.send(request, reply, name))
  api.get('/guide', hidden, async (_request, reply) => reply.redirect('/guide/', 308))
  api.get('/guide/*', hidden, (request, reply) =>
    guide.send(request, reply, (request.params as { '*': string })['*']),
  )
}

class Guide {
  readonly #folder: string
  #build: Build | null = null
  /** The current check for a new build. All requests share it. */
  #checking: Promise<void> | null = null
  #checkedMs = Number.NEGATIVE_INFINITY

  constructor(folder: string) {
    this.#folder = folder
  }

  async send(request: FastifyRequest, reply: FastifyReply, path: string): Promise<FastifyReply> {
    const build = await this.#findBuild()
    if (!build) return sendNotBuilt(reply)
    if (!build.files.has(path) && build.files.has(`${path}/`)) return reply.redirect(`/guide/${path}/`, 308)
    reply.headers({
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    const file = build.files.get(path)
    const asset = await this.#read(build, file ?? '404.html')
    if (!asset) return sendNotBuilt(reply)
    if (file === undefined) return reply.code(404).header('content-type', asset.contentType).send(asset.bytes)
    return sendAsset(request, reply, asset, path.startsWith('assets/') ? forGood : untilChanged)
  }

  /** Returns null if the guide is not built. */
  async #findBuild(): Promise<Build | null> {
    if (performance.now() - this.#checkedMs >= checkMs) {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = null
        this.#checkedMs = performance.now()
      })
      await this.#checking
    }
    return this.#build
  }

  /** Lists the folder again only after a build. Keeps the last build while the next one runs. */
  async #check(): Promise<void> {
    try {
      // The build writes this file last.
      const { mtimeMs } = await stat(join(this.#folder, 'llms.txt'))
      if (this.#build?.mtimeMs !== mtimeMs)
        this.#build = { mtimeMs, files: await listFiles(this.#folder), assets: new Map() }
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }

  /** Returns null if the next build has removed the file. */
  async #read({ assets }: Build, file: string): Promise<Asset | null> {
    let reading = assets.get(file)
    if (!reading) {
      reading = readAsset(join(this.#folder, file))
      assets.set(file, reading)
      // The next request tries again.
      reading.catch(() => assets.delete(file))
    }
    try {
      return await reading
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }
}

function sendNotBuilt(reply: FastifyReply): FastifyReply {
  return reply.code(503).header('content-type', 'text/plain; charset=utf-8').send(notBuilt)
}

async function listFiles(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const paths = files.map(({ parentPath, name }) =>
    relative(folder, join(parentPath, name)).replaceAll(sep, '/'),
  )
  return new Map(paths.map((path) => [urlPath(path), path]))
}

/** Pages are addressed without their ending: `internals/api`, and `sdk/` for `sdk/index.html`. */
function urlPath(file: string): string {
  return file.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')
}
