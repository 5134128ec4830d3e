// `posthorn backup …` and `posthorn restore …`: copies everything while mail flows, and restores it.
import { resolve } from 'node:path'
import type { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { counted } from '../base/counted.ts'
import { createLog } from '../base/log.ts'
import { openBlobs } from '../blobs/open-blobs.ts'
import { holdWords, releaseMend } from '../config/settings.ts'
import type { Manifest } from '../flow/backup/manifest.ts'
import { formatBytes } from '../flow/backup/progress-reporter.ts'
import { releaseCopy } from '../flow/backup/release-copy.ts'
import { restoreBackup } from '../flow/backup/restore-backup.ts'
import { takeBackup } from '../flow/backup/take-backup.ts'
import { verifyBackup } from '../flow/backup/verify-backup.ts'
import { readKeyFile } from '../flow/secrets/key-file.ts'
import { type Foundation, openDatabase } from '../foundation.ts'
import { requireUsable } from '../postgres/requirements.ts'
import { loadSettings, type OutputOptions, print, remark, withFoundation } from './context.ts'
import { askPassphrase, choosePassphrase, givenPassphrase, type PassphraseOptions } from './passphrase.ts'

const backupHelp = `
FOLDER must be new, empty, or hold an interrupted backup. The backup contains all tables at one moment, the large
messages, and the secret key, sealed by a passphrase from POSTHORN_BACKUP_PASSPHRASE, --passphrase-file or the keyboard.
It contains everything that was acknowledged before the command began. The service may run at the same time.`

const restoreHelp = `
Restores into an empty data folder, and into an empty database if POSTHORN_DATABASE_URL names one. Never overwrites.
The copy is held: ${holdWords}.
Changes made after the backup are undone: keys that were revoked work again, and removed members are back. A backup
contains no sessions and no links.
${releaseMend[0]!.toUpperCase()}${releaseMend.slice(1)}.`

const passphraseOption = ['--passphrase-file <file>', 'a file that holds the passphrase'] as const

interface BackupOptions extends PassphraseOptions {
  withoutKey?: boolean
}

export function addBackupCommands(program: Command): void {
  const backup = program
    .command('backup')
    .description('back up everything, while mail flows')
    .enablePositionalOptions()
    .argument('<folder>', 'the folder for the backup')
    .option(...passphraseOption)
    .option('--without-key', 'leave the secret key out: a restore then needs the key from elsewhere')
    .option('--json', 'print JSON')
    .addHelpText('after', backupHelp)
    .action(make)
  backup
    .command('verify <folder>')
    .description('compare every file of a backup with its checksum; with a passphrase, also open its key')
    .option(...passphraseOption)
    .option('--json', 'print JSON')
    .action(verify)
  const restore = program
    .command('restore')
    .description('restore a backup into an empty data folder; the copy is held until it is released')
    .enablePositionalOptions()
    .argument('<folder>', 'the backup')
    .option(...passphraseOption)
    .option('--json', 'print JSON')
    .addHelpText('after', restoreHelp)
    .action(restoreAll)
  restore
    .command('release')
    .description('send mail and call webhooks from a restored copy, from the next start on')
    .option('--json', 'print JSON')
    .action(release)
}

async function make(name: string, options: BackupOptions): Promise<void> {
  const folder = resolve(options.terminal.folder, name)
  const progress = (line: string) => remark(options, line)
  const manifest = await withFoundation(options, async (foundation) => {
    const key = options.withoutKey ? null : await readKey(foundation, options)
    const { db, blobs } = foundation
    return await takeBackup({ db, blobs, progress }, { folder, version: packageJson.version, key })
  })
  print(options, { folder, ...summaryOf(manifest) }, describe(`Backup in ${folder}`, manifest))
}

async function readKey({ settings }: Foundation, options: BackupOptions) {
  const keys = await readKeyFile(settings.secretKeyFile)
  return { keys: keys!, passphrase: await choosePassphrase(options, settings) }
}

async function verify(name: string, options: BackupOptions): Promise<void> {
  const folder = resolve(options.terminal.folder, name)
  const progress = (line: string) => remark(options, line)
  const passphrase = await givenPassphrase(options, loadSettings(options))
  const { status, manifest, faults } = await verifyBackup(folder, { passphrase, progress })
  const isOpened = status === 'ok' && manifest?.key && passphrase !== null
  const found = manifest && describe(`Backup in ${folder}`, manifest)
  const words = {
    ok: 'Every file is intact.',
    damaged: 'The backup is damaged:',
    unfinished: 'The backup is unfinished:',
  }
  const lines = [found, words[status], ...faults, isOpened ? 'The passphrase opens its key.' : null]
  const answer = { folder, status, faults, ...(manifest && summaryOf(manifest)) }
  print(options, answer, lines.filter((line) => line !== null).join('\n'))
  if (status !== 'ok') options.terminal.exitStatus = 1
}

async function restoreAll(name: string, options: BackupOptions): Promise<void> {
  const settings = loadSettings(options)
  const log = createLog('warn', settings.logFormat, options.terminal.stderr)
  const progress = (line: string) => remark(options, line)
  const { dataDir, blobStore, secretKeyFile } = settings
  const blobs = await openBlobs({ store: blobStore, scratchFolder: dataDir, databaseId: null })
  const deps = { dataDir, secretKeyFile, blobs, log, progress }
  const openDurable = async () => {
    const opened = await openDatabase(settings, log, progress)
    await requireUsable(opened.db)
    return { db: opened.db, release: () => opened.db.close().then(opened.release) }
  }
  const folder = resolve(options.terminal.folder, name)
  const input = { folder, askPassphrase: () => askPassphrase(options, settings) }
  const manifest = await restoreBackup({ ...deps, openDatabase: openDurable }, input)
  const words = [
    describe(`Restored into ${dataDir}`, manifest),
    `The copy is held: ${holdWords}.`,
    `${releaseMend[0]!.toUpperCase()}${releaseMend.slice(1)}.`,
    `Undone: keys revoked, members removed, invitations withdrawn, passwords and passkeys changed after ${manifest.takenAt}.`,
    'Repeat the changes that must not be undone. Everybody must sign in again: a backup contains no sessions and no links.',
  ]
  print(options, { folder, dataDir, held: true, ...summaryOf(manifest) }, words.join('\n'))
}

async function release(options: OutputOptions): Promise<void> {
  await withFoundation(options, releaseCopy)
  const words = 'Released. Restart the service: mail and webhook calls then go out, the waiting ones first.'
  print(options, { released: true }, words)
}

/** The summary of a backup in an answer. */
function summaryOf({ id, takenAt, posthorn, tables, blobs, key }: Manifest) {
  return {
    id,
    takenAt,
    posthorn,
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    tableBytes: tables.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    blobs: { count: blobs.count, bytes: blobs.totalBytes, missing: blobs.missing },
    key: key ? 'sealed' : 'left out',
  }
}

function describe(what: string, manifest: Manifest): string {
  const { takenAt, tables, rows, tableBytes, blobs, key } = summaryOf(manifest)
  const lost = blobs.missing.length
  const lines = [
    `${what}, as of ${takenAt}:`,
    `  ${counted(tables, 'table')}, ${counted(rows, 'row')}, ${formatBytes(tableBytes)} packed`,
    `  ${counted(blobs.count, 'large message')}, ${formatBytes(blobs.bytes)}`,
    ...(lost > 0
      ? [
          `  ${counted(lost, 'large message had no file, and is', 'large messages had no file, and are')} not included: ${blobs.missing.slice(0, 5)}`,
        ]
      : []),
    `  the secret key ${key === 'sealed' ? 'is included, sealed by the passphrase' : 'is not included'}`,
  ]
  return lines.join('\n')
}
