// Root's embedded PostgreSQL: it has an account of its own, created if missing, and refuses every other account.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { silentLog } from '../../src/base/log.ts'
import { findPostmaster } from '../../src/postgres/embedded/postmaster.ts'
import { useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'

const run = promisify(execFile)
const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const skip = isRoot ? false : 'not root on Linux'

async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'posthorn-test-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return folder
}

async function idOf(option: '-u' | '-g', account: string): Promise<number> {
  return Number((await run('id', [option, account])).stdout)
}

/** A process that switches to another account and asks the socket for a superuser session. Prints the server's reply. */
const intruder = `
  import pg from ${JSON.stringify(import.meta.resolve('pg'))}
  const [host, uid, gid] = process.argv.slice(1)
  process.setgroups([])
  process.setgid(Number(gid))
  process.setuid(Number(uid))
  const client = new pg.Client({ host, user: 'posthorn', database: 'postgres' })
  client.on('error', () => {})
  console.log(await client.connect().then(() => 'let in', (error) => error.code))
  process.exit(0)`

async function intrude(host: string, account: string): Promise<string> {
  const ids = [await idOf('-u', account), await idOf('-g', account)]
  const words = ['--input-type=module', '-e', intruder, host, ...ids.map(String)]
  return (await run(process.execPath, words)).stdout.trim()
}

test('hostile 15: root’s PostgreSQL runs under its own account, and refuses all others', {
  skip,
}, async (t) => {
  const directory = join(await emptyFolder(t), 'postgres')
  const server = await useEmbedded({ directory, log: silentLog })
  t.after(() => server.release())
  const own = await idOf('-u', 'posthorn')
  const { pid } = (await findPostmaster(join(directory, 'cluster')))!
  assert.equal((await stat(join(directory, '..'))).mode & 0o777, 0o700)
  assert.equal((await stat(`/proc/${pid}`)).uid, own)
  assert.equal((await stat(join(directory, 'log'))).uid, 0)
  const around = `/proc/${pid}/cwd/../socket`
  assert.equal(await intrude(around, 'root'), 'let in')
  for (const account of ['nobody', 'daemon']) {
    assert.equal(await intrude(around, account), 'EACCES')
    assert.equal(await intrude(join(directory, 'socket'), account), 'EACCES')
  }
  // Another PostgreSQL of the same account reaches the socket, and is not the account that runs the service.
  assert.equal(await intrude(around, 'posthorn'), '28000')
  await server.release()
  await chown(join(directory, 'cluster'), 65_534, 65_534)
  const message = /belongs to uid 65534.*run 'chown -R [1-9]\d*:[1-9]\d* [^']*cluster'$/
  await assert.rejects(useEmbedded({ directory, log: silentLog }), { name: 'EmbeddedError', message })
})

/** Chooses the account for the folder three times at once. */
const chooser = `
  import { chooseOwner } from ${JSON.stringify(new URL('../../src/postgres/embedded/owner.ts', import.meta.url).href)}
  const choices = Array.from({ length: 3 }, () => chooseOwner(process.argv[1]))
  console.log(JSON.stringify(await Promise.all(choices).catch((error) => error.message)))`

/**
 * Runs in a mount namespace with an /etc that lacks the account: first without the programs that create one, then with them.
 */
const withoutAccount = `set -e
mount -t tmpfs posthorn-test "$1"
cp -a /etc/. "$1"
for file in passwd group shadow gshadow; do [ ! -e "$1/$file" ] || sed -i /^posthorn:/d "$1/$file"; done
mount --bind "$1" /etc
for program in useradd adduser; do
  for folder in /usr/sbin /usr/bin; do [ ! -e $folder/$program ] || mount --bind /dev/null $folder/$program; done
done
"$2" --input-type=module -e "$3" "$4"
for program in useradd adduser; do
  for folder in /usr/sbin /usr/bin; do [ ! -c $folder/$program ] || umount $folder/$program; done
done
"$2" --input-type=module -e "$3" "$4"
"$2" --input-type=module -e "$3" "$4"
grep -c ^posthorn: /etc/passwd`

test('as root, concurrent starts make the account once, or one line says how to make it', {
  skip,
}, async (t) => {
  const [folder, etc] = [await emptyFolder(t), await emptyFolder(t)]
  const words = ['--mount', 'sh', '-c', withoutAccount, 'sh', etc, process.execPath, chooser, folder]
  const { stdout } = await run('unshare', words).catch((error) => {
    if (process.env['CI'] || !/unshare failed|permission denied|Operation not permitted/i.test(error.stderr))
      throw error
    t.skip('no mounts here')
    return { stdout: '' }
  })
  if (!stdout) return
  const [refusal, first, second, lines] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.match(
    refusal,
    /^PostgreSQL does not run as root.*neither useradd nor adduser.*run 'useradd -r posthorn'/,
  )
  assert.ok(first[0].uid > 0 && first[0].gid > 0)
  assert.deepEqual([...first, ...second], Array(6).fill(first[0]))
  assert.equal(lines, 1)
})
