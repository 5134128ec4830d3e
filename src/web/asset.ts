// Responses that are the same for every client: made and compressed once, and sent only to clients without a current copy.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Asset {
  contentType: string
  bytes: Buffer
  compressed: Buffer
  /** Digest of `bytes`, in base64url. */
  digest: string
}

const compress = promisify(gzip)

export async function makeAsset(contentType: string, content: string | Buffer): Promise<Asset> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return { contentType, bytes, compressed: await compress(bytes, { level: 9 }), digest }
}

/** For URLs that contain the digest, whose content never changes. */
export const forGood = 'public, max-age=31536000, immutable'
/** For URLs whose content may change with the next version: clients keep a copy and revalidate it each time. */
export const untilChanged = 'no-cache'

/** Sends the asset, or 304 if the client has it. */
export function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  { contentType, bytes, compressed, digest }: Asset,
  cacheControl: string,
): FastifyReply {
  // RFC 9110 8.8.1: a weak tag, because the compressed and the plain form share it.
  const tag = `W/"${digest}"`
  reply.headers({ 'cache-control': cacheControl, etag: tag, vary: 'accept-encoding' })
  const known = request.headers['if-none-match'] ?? ''
  if (known.split(',').some((one) => one.trim() === tag)) return reply.code(304).send()
  reply.header('content-type', contentType)
  if (!takesGzip(request.headers['accept-encoding'])) return reply.send(bytes)
  return reply.header('content-encoding', 'gzip').send(compressed)
}

// RFC 9110 12.5.3: a weight of zero means "not acceptable".
function takesGzip(accepted: unknown): boolean {
  return (
    typeof accepted === 'string' && /(?:^|,)\s*gzip\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))/i.test(accepted)
  )
}
