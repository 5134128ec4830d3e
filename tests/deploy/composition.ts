// Reads a Compose file, and checks its keys and references.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'

export interface Service {
  image: string
  build?: string | { context: string; dockerfile: string }
  depends_on?: Record<string, { condition: string }>
  environment?: Record<string, string>
  env_file?: string[]
  secrets?: (string | { source: string; target: string })[]
  volumes?: string[]
  ports?: string[]
  tmpfs?: string[]
  healthcheck?: { test: string[] }
  stop_grace_period?: string
  profiles?: string[]
  command?: string[]
}

export interface Composition {
  services: Record<string, Service>
  secrets: Record<string, { file: string }>
  volumes: Record<string, null>
}

/** The keys of https://github.com/compose-spec/compose-spec/blob/main/spec.md that are used here. */
const known = {
  top: ['name', 'services', 'secrets', 'volumes'],
  service: [
    ...[
      'image',
      'build',
      'restart',
      'depends_on',
      'environment',
      'env_file',
      'secrets',
      'volumes',
      'ports',
      'init',
    ],
    ...[
      'stop_grace_period',
      'read_only',
      'tmpfs',
      'cap_drop',
      'cap_add',
      'security_opt',
      'logging',
      'shm_size',
    ],
    ...['healthcheck', 'network_mode', 'user', 'command', 'profiles'],
  ],
  healthcheck: ['test', 'interval', 'timeout', 'retries', 'start_period'],
}

export function readComposition(file: string): Composition {
  return parse(readFileSync(file, 'utf8'), { merge: true }) as Composition
}

/** Fails on a key that the specification lacks, or a reference to something missing. Operators make the later files. */
export function checkComposition(file: string, later: string[] = []): void {
  const composition = readComposition(file)
  const { services, secrets, volumes } = composition
  const ownKeys = Object.keys(composition).filter((key) => !key.startsWith('x-'))
  assert.deepEqual(ownKeys.sort(), [...known.top].sort())
  for (const [name, service] of Object.entries(services)) {
    for (const key of Object.keys(service)) assert.ok(known.service.includes(key), `${name}.${key}`)
    for (const key of Object.keys(service.healthcheck ?? {})) assert.ok(known.healthcheck.includes(key), key)
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {}))
      assert.ok(condition === 'service_healthy' && services[other]?.healthcheck, `${name} waits for ${other}`)
    for (const secret of service.secrets ?? [])
      assert.ok(secrets[typeof secret === 'string' ? secret : secret.source], `${name}: ${secret}`)
    for (const volume of service.volumes ?? []) {
      const source = volume.split(':')[0]!
      const isThere = source.startsWith('.') ? existsSync(join(dirname(file), source)) : source in volumes
      assert.ok(later.includes(source) || isThere, volume)
    }
  }
}
