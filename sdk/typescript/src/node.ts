// Files of Node, Bun and Deno as attachments. Everything else of this package runs without Node's modules.
import { openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import type { GivenAttachment } from './attachments.ts'

/** Returns an attachment with the bytes of a file and its name. Throws if there is no such file. */
export async function fileAttachment(
  path: string,
  contentType = 'application/octet-stream',
): Promise<GivenAttachment> {
  return { filename: basename(path), contentType, content: await openAsBlob(path) }
}
