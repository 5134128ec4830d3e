// `posthorn blobs move FROM TO`: moves the large messages to another folder or bucket.
import type { Command } from 'commander'
import { counted } from '../base/counted.ts'
import { openBlobs } from '../blobs/open-blobs.ts'
import { parseBlobStore } from '../config/linked-settings.ts'
import { readEnvironment } from '../config/settings.ts'
import { type Moved, moveBlobs } from '../flow/backup/move-blobs.ts'
import { formatBytes } from '../flow/backup/progress-reporter.ts'
import { type OutputOptions, print, remark, withFoundation } from './context.ts'

const moveHelp = `
FROM and TO are written like POSTHORN_BLOB_URL. Move in this order:
  1. While the service runs: posthorn blobs move FROM TO. It copies everything and compares each copy.
  2. Stop all nodes, and run the same command again. It copies the rest and makes TO the store of the database.
  3. Set POSTHORN_BLOB_URL to TO on all nodes, and start them.
The command can be interrupted at any time and run again. Nothing is deleted from FROM.`

export function addBlobCommands(program: Command): void {
  program
    .command('blobs')
    .description('move the large messages to another store')
    .command('move <from> <to>')
    .description('copy all large messages to another folder or bucket, while mail flows')
    .option('--json', 'print JSON')
    .addHelpText('after', moveHelp)
    .action(move)
}

async function move(fromUrl: string, toUrl: string, options: OutputOptions): Promise<void> {
  const { folder, environment } = options.terminal
  const variables = readEnvironment(folder, environment)
  const open = async (url: string, scratchFolder: string) =>
    await openBlobs({ store: parseBlobStore(url, variables, folder), scratchFolder, databaseId: null })
  const progress = (line: string) => remark(options, line)
  const moved = await withFoundation(options, async ({ db, settings: { dataDir } }) =>
    moveBlobs({ db, progress, from: await open(fromUrl, dataDir), to: await open(toUrl, dataDir) }),
  )
  print(options, moved, describe(moved, toUrl))
}

function describe({ copied, copiedBytes, lost, status }: Moved, toUrl: string): string {
  const lines = [`${counted(copied, 'large message')} copied and compared, ${formatBytes(copiedBytes)}.`]
  if (lost.length > 0)
    lines.push(
      `${counted(lost.length, 'large message is', 'large messages are')} in neither store: ${lost.slice(0, 5).join(', ')}`,
    )
  lines.push(
    status === 'done'
      ? `Done. Set POSTHORN_BLOB_URL=${toUrl} on all nodes, and start them.`
      : 'Nodes are running, and still write to the old store. Stop all nodes, and run this command again: it copies the rest.',
  )
  return lines.join('\n')
}
