// `posthorn backup …` and `posthorn restore …`: copies everything while mail flows, and restores it.
import { resolve } from 'node:path'
import type { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { counted } from '../base/counted.ts'
import { createLog } from '../base/log.ts'
import { DiskBlobs } from '../blobs/disk.ts'
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
FOLDER is new, empty, or one in which a backup was broken off. In it are all tables as they stood at one moment, the
large messages, and the secret key, sealed by a passphrase: POSTHORN_BACKUP_PASSPHRASE, --passphrase-file, or typed.
Everything that was acknowledged before the command began is in it. The service may run meanwhile.`

const restoreHelp = `
It restores into an empty data folder, and an empty database where POSTHORN_DATABASE_URL names one; nothing is overwritten.
The copy is held: ${holdWords}.
What was revoked, removed or changed after the backup was made is as before. Sessions and links are in no backup.
${releaseMend[0]!.toUpperCase()}${releaseMend.slice(1)}.`

const passphraseOption = ['--passphrase-file <file>', 'a file whose first line is the passphrase'] as const

interface BackupOptions extends PassphraseOptions {
  withoutKey?: boolean
}

export function addBackupCommands(program: Command): void {
  const backup = program
    .command('backup')
    .description('a copy of everything, made while mail flows')
    .enablePositionalOptions()
    .argument('<folder>', 'where to')
    .option(...passphraseOption)
    .option('--without-key', 'leave the secret key out: without it the copy cannot be started')
    .option('--json', 'print JSON')
    .addHelpText('after', backupHelp)
    .action(make)
  backup
    .command('verify <folder>')
    .description('read a backup and compare every file with its checksum; with a passphrase, open its key')
    .option(...passphraseOption)
    .option('--json', 'print JSON')
    .action(verify)
  const restore = program
    .command('restore')
    .description('a backup into an empty data folder; the copy is held until it is released')
    .enablePositionalOptions()
    .argument('<folder>', 'the backup')
    .option(...passphraseOption)
    .option('--json', 'print JSON')
    .addHelpText('after', restoreHelp)
    .action(restoreAll)
  restore
    .command('release')
    .description('let mail and webhooks out of a restored copy, from the next start on')
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
    ok: 'Every file is as it was written.',
    damaged: 'It is damaged:',
    unfinished: 'Unfinished:',
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
  const { dataDir, blobFolder, secretKeyFile } = settings
  const deps = { dataDir, blobFolder, secretKeyFile, blobs: new DiskBlobs(blobFolder), log, progress }
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
    `It is held: ${holdWords}.`,
    `For it ${releaseMend}.`,
    `Undone: keys revoked, members removed, invitations taken back, passwords and passkeys changed after ${manifest.takenAt}.`,
    'Revoke, remove and change again what must not come back. Everybody signs in anew: no session and no link is in a backup.',
  ]
  print(options, { folder, dataDir, held: true, ...summaryOf(manifest) }, words.join('\n'))
}

async function release(options: OutputOptions): Promise<void> {
  await withFoundation(options, releaseCopy)
  const words =
    'Released: from the next start on mail and webhooks go out, what waited first. Start the service again.'
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
          `  ${counted(lost, 'large message had no file, and is', 'large messages had no file, and are')} not in it: ${blobs.missing.slice(0, 5)}`,
        ]
      : []),
    `  the secret key ${key === 'sealed' ? 'is in it, sealed by the passphrase' : 'is not in it'}`,
  ]
  return lines.join('\n')
}
