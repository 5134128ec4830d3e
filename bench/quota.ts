// CPU quotas by control groups of Linux: a machine of small cores, of which each process of a service has one at most.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Scope } from '../tests/support/until.ts'

/** The names of the files that differ between the versions of control groups. */
interface Version {
  /** The folder of the bench's own group. Processes return there. */
  home: string
  writeQuota(group: string, quotaUs: number): void
  /** Lets the children of a group have quotas. */
  openChildren(group: string): void
}

export interface SmallCores {
  /**
   * Limits each of these processes to one small core, and all of them together to `count`. Both limits are needed: a process
   * that has one thread would otherwise use the cores of the others.
   */
  hold(pids: readonly number[]): void
}

/** Short, so that a process waits only milliseconds for its next period, and long enough for the kernel to keep it. */
const periodUs = 20_000

/** Makes `count` small cores, each of `share` of a real core. The scope removes them. Throws if no group can be written. */
export function makeSmallCores(scope: Scope, { count, share }: { count: number; share: number }): SmallCores {
  const version = findVersion()
  const machine = join(version.home, `posthorn-bench-${process.pid}-${count}`)
  const quotaUs = Math.round(periodUs * share)
  const groups = [machine]
  const held = new Set<number>()
  version.openChildren(version.home)
  mkdirSync(machine)
  scope.after(() => {
    for (const pid of held) move(pid, version.home)
    for (const group of groups.reverse()) rmdirSync(group)
  })
  version.writeQuota(machine, quotaUs * count)
  version.openChildren(machine)
  return {
    hold: (pids) => {
      for (const pid of pids) {
        const core = join(machine, `core-${groups.length}`)
        mkdirSync(core)
        groups.push(core)
        version.writeQuota(core, quotaUs)
        move(pid, core)
        held.add(pid)
      }
    },
  }
}

function findVersion(): Version {
  const found = findFirst() ?? findSecond()
  if (!found) throw new Error('missing: neither version of control groups has a controller for CPU here')
  const probe = join(found.home, `posthorn-bench-probe-${process.pid}`)
  try {
    mkdirSync(probe)
    rmdirSync(probe)
  } catch (error) {
    throw new Error(
      `missing: the control groups in ${found.home} cannot be written: ${(error as Error).message}`,
    )
  }
  return found
}

function findFirst(): Version | null {
  const mount = findMount('cgroup', (options) => options.split(',').includes('cpu'))
  if (mount === null) return null
  const path = ownPath((controllers) => controllers.split(',').includes('cpu'))
  return {
    home: existing(join(mount, path), mount),
    writeQuota: (group, quotaUs) => {
      writeFileSync(join(group, 'cpu.cfs_period_us'), `${periodUs}`)
      writeFileSync(join(group, 'cpu.cfs_quota_us'), `${quotaUs}`)
    },
    openChildren: () => {},
  }
}

function findSecond(): Version | null {
  const mount = findMount('cgroup2', () => true)
  if (mount === null) return null
  const own = existing(
    join(
      mount,
      ownPath((controllers) => controllers === ''),
    ),
    mount,
  )
  // A group with processes may have no groups with quotas in it, except the root. So the new groups are siblings of ours.
  const home = own === mount ? mount : dirname(own)
  if (!readFileSync(join(home, 'cgroup.controllers'), 'utf8').split(/\s/).includes('cpu')) return null
  return {
    home,
    writeQuota: (group, quotaUs) => writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${periodUs}`),
    openChildren: (group) => writeFileSync(join(group, 'cgroup.subtree_control'), '+cpu'),
  }
}

function findMount(type: string, wants: (options: string) => boolean): string | null {
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, folder, kind, options] = line.split(' ')
    if (folder && kind === type && wants(options!)) return folder
  }
  return null
}

/** The path of our own group in the hierarchy whose controllers match. */
function ownPath(wants: (controllers: string) => boolean): string {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (path !== undefined && wants(controllers!)) return path
  }
  return '/'
}

/** In a container the path may be that of the host. */
function existing(path: string, otherwise: string): string {
  return existsSync(path) ? path : otherwise
}

function move(pid: number, group: string): void {
  try {
    writeFileSync(join(group, 'cgroup.procs'), `${pid}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // It has ended.
  }
}
