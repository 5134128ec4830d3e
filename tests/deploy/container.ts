// Runs a rendered pod as a container without a container runtime: a network, a read-only file system with the image's
// files, the pod's volumes, and the account without rights.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Machine } from '../faults/net-namespace.ts'
import { countStart } from '../support/count-start.ts'
import type { Scope } from '../support/until.ts'
import { copiesOf, environmentOf, readStages, root, textsOf } from './dockerfile.ts'
import { environmentIn, type PodSpec } from './helm.ts'

const image = readStages().at(-1)!
const account = 64990

export interface Cluster {
  /** Holds the files of all containers. Its owner removes it. */
  folder: string
  /** The keys of each Secret, by its name. */
  secrets: Record<string, Record<string, string>>
  /** Folders of this machine that pods reach under another path, as they reach servers over a network. */
  links: Record<string, string>
}

export interface Exit {
  status: number | null
  stdout: string
  log: string
}

export interface Running {
  child: ChildProcess
  log(): string
  ended: Promise<Exit>
}

/** Returns the lines that lay out the file system of a container below `$root`, and make it read-only. */
function layOut({ containers: [container], volumes }: PodSpec, cluster: Cluster): string[] {
  const lines = [
    'mount -t tmpfs -o mode=0755 tmpfs "$root"',
    'cd "$root"',
    'mkdir usr proc dev etc opt opt/posthorn',
  ]
  for (const name of ['usr', 'proc', 'dev']) lines.push(`mount --rbind /${name} ${name}`)
  for (const name of ['bin', 'lib', 'lib64', 'sbin'])
    if (existsSync(`/${name}`)) lines.push(`cp -P /${name} .`)
  for (const file of ['hosts', 'nsswitch.conf', 'ld.so.cache']) lines.push(`cp /etc/${file} etc/`)
  lines.push(`echo 'posthorn:x:${account}:${account}::/nonexistent:/bin/false' >etc/passwd`)
  const paths = copiesOf(image).flatMap(({ sources, from }) =>
    sources.map((source) => (from ? source.replace('/opt/posthorn/', '') : source)),
  )
  for (const path of paths) {
    const isFile = path.includes('.') || path === 'LICENSE'
    lines.push(isFile ? `touch opt/posthorn/${path}` : `mkdir -p opt/posthorn/${path}`)
    lines.push(`mount --bind '${join(root, path)}' opt/posthorn/${path}`)
  }
  lines.push(`mkdir -p .${textsOf(image, 'WORKDIR').at(-1)}`)
  for (const [there, here] of Object.entries(cluster.links))
    lines.push(`mkdir -p .${there}`, `mount --bind '${here}' .${there}`)
  for (const { name, mountPath } of container.volumeMounts) {
    const volume = volumes.find((each) => each.name === name)!
    const owned = `mode=2777,uid=0,gid=${account}`
    lines.push(`mkdir -p .${mountPath}`)
    if (volume.emptyDir) lines.push(`mount -t tmpfs -o ${owned} tmpfs .${mountPath}`)
    else lines.push(`mount --bind '${storeSecret(volume.secret!, cluster)}' .${mountPath}`)
  }
  lines.push('mount -o remount,ro "$root"')
  return lines
}

/** Writes the files of a volume with a Secret, as the kubelet does for a pod with `fsGroup`. */
function storeSecret(
  { secretName, defaultMode, items }: NonNullable<PodSpec['volumes'][0]['secret']>,
  cluster: Cluster,
) {
  const folder = mkdtempSync(join(cluster.folder, 'secret-'))
  chmodSync(folder, 0o755)
  const secret = cluster.secrets[secretName]!
  for (const { key, path } of items ?? Object.keys(secret).map((key) => ({ key, path: key }))) {
    writeFileSync(join(folder, path), secret[key]!)
    chownSync(join(folder, path), 0, account)
    chmodSync(join(folder, path), defaultMode)
  }
  return folder
}

/** Starts the pod's container there. `args` replaces its own arguments, as `kubectl exec` does. It ends with the scope. */
export function runPod(
  scope: Scope,
  spec: PodSpec,
  machine: Machine,
  cluster: Cluster,
  args?: string[],
): Running {
  const [container] = spec.containers
  countStart()
  const own = mkdtempSync(join(cluster.folder, 'container-'))
  mkdirSync(join(own, 'root'))
  const entrypoint = JSON.parse(textsOf(image, 'ENTRYPOINT')[0]!) as string[]
  const program = [...entrypoint, ...(args ?? container.args)].map((word) => `'${word}'`).join(' ')
  const rights = `--reuid ${account} --regid ${account} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all`
  const lines = [
    `# Becomes the container of a test.`,
    'set -e',
    `root='${own}/root'`,
    ...layOut(spec, cluster),
    `exec chroot "$root" /usr/bin/env -C ${textsOf(image, 'WORKDIR').at(-1)} /usr/bin/setpriv ${rights} -- ${program}`,
  ]
  writeFileSync(join(own, 'run'), lines.join('\n'))
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  const environment = environmentIn(container, cluster.secrets, machine.there)
  const [enter, ...words] = machine.enter
  const child = spawn(enter!, [...words, 'unshare', '--mount', '/bin/sh', join(own, 'run')], {
    env: { PATH: path, ...environmentOf(image), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [log, stdout] = ['', '']
  child.stderr!.on('data', (bytes) => (log += bytes))
  child.stdout!.on('data', (bytes) => (stdout += bytes))
  const ended = once(child, 'close').then(([status]) => ({ status, stdout, log }))
  scope.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { child, log: () => log, ended }
}
