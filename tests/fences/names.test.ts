// Checks that the first line of every file says what the file is for, and that no name is an empty word.
import assert from 'node:assert/strict'
import { basename } from 'node:path'
import { test } from 'node:test'
import { declaredNames, readFunctionNames, sqlNames } from './declared-names.ts'
import { lineAt, parse, readProduct, readSources, type SourceFile, type SyntaxNode, walk } from './source.ts'

const empty =
  /^(process(es|ed|ing|or)?|handle(s|d|r|rs)?|manage(s|r|rs)?|data|info|helpers?|utils?|services?)$/
/** Private words for which the field has a word. CONTRIBUTING.md has the glossary. */
const ownWords =
  /^(tell(s|ing)?|told|look(s|ed|ing)?|places?|placed|turns?|judg(e|es|ed|ing|ement)|crowd(s|ed|ing)?|gather(s|ed|ing)?|rouse[rs]?|heed(s|ed)?|muted|shown|fresh|beside|behind|lanes?|deeds?|said|nobody|hand|rests|stands)$/
/**
 * Exceptions: our error class, the setting POSTHORN_DATA_DIR, the option `demo --fresh`. `managed` is the specification's
 * word for our own domain.
 */
const granted = new Set([
  ...['ServiceError', 'dataDir', 'fresh'],
  // Methods that `pg` calls on a query object we supply.
  ...[
    'handleError',
    'handleReadyForQuery',
    'handleCommandComplete',
    'handleCopyInResponse',
    'handleCopyData',
  ],
])

function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
}

function isEmptyWord(word: string, file: SourceFile): boolean {
  // DATA is a verb of SMTP.
  return empty.test(word) && !(word === 'data' && file.path.startsWith('src/smtp/'))
}

test('fences: the first line of every file says its purpose in one sentence', () => {
  const silent = readSources('{src,tests,bench,scripts,sdk/typescript/src}/**/*.ts').filter(
    ({ text }) => !/^\/\/ \S.*\S\s/.test(text),
  )
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
    'begin with `// ` and its purpose',
  )
})

test('fences: files are kebab-case, and none is called util, helper or index', () => {
  const files = readSources('{src,tests,bench,scripts,sdk/typescript/src}/**/*.ts').map(({ path }) => path)
  const wrong = files.filter((path) => {
    const name = basename(path).replace(/(\.test|\.d)?\.ts$/, '')
    return !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || /(^|-)(utils?|helpers?|index|common)(-|$)/.test(name)
  })
  assert.deepEqual(wrong, [])
})

test('fences: no name contains process, handle, manage, data, info, helper or service', () => {
  const wrong = readProduct().flatMap((file) =>
    declaredNames(file)
      .filter(({ name }) => !granted.has(name) && words(name).some((word) => isEmptyWord(word, file)))
      .map(({ name, at }) => `${at} ${name}`),
  )
  assert.deepEqual(wrong, [], 'name the thing or the action')
})

test('fences: names use the field’s words', () => {
  const names = [...readProduct().flatMap(declaredNames), ...readFunctionNames()]
  const wrong = names
    .filter(({ name }) => !granted.has(name) && words(name).some((word) => ownWords.test(word)))
    .map(({ name, at }) => `${at} ${name}`)
  assert.deepEqual(wrong, [], 'CONTRIBUTING.md has the word')
})

test('fences: the names of TypeScript are those of members, parameters and locals, destructured ones too', () => {
  const text = `class A { #b = 1; static #c() {} get d() { return 1 } }
    const { e, f: { g = 2 }, ...h } = i, [j, [k]] = l
    for (const m of n) try { o() } catch (p) { const q = (r: (s: number) => void, { t }: U, ...v: W[]) => 1 }`
  const names = declaredNames({ path: 'a.ts', text, lineCount: 3 }).map(({ name }) => name)
  assert.deepEqual(names.sort(), [...'Abcdeghjkmpqrstv'])
})

test('fences: the names of SQL are all its words outside of comments and strings', () => {
  const text = `-- Returns what is "behind". create function said()
    create or replace function a(b text, inout c uuid, out d uuid[]) returns table (e bigint, "f" jsonb) language plpgsql as $$
    declare
      g constant text := 'nobody'; -- told
      h record;
    begin
      with recursive i as (select 0 as j, k.l m from n as o), p as materialized (select from q)
      select r.s as "t" from unnest(u, v) with ordinality as w(x, y), jsonb_to_recordset(b) as z(aa text, bb int);
    end $$;`
  const names = sqlNames(text).map(({ name }) => name)
  for (const name of [...'abcdefghijmoptwxyz', 'aa', 'bb']) assert.ok(names.includes(name), name)
  assert.deepEqual(
    names.filter((name) => ownWords.test(name)),
    [],
  )
})

test('fences: no parameter is a boolean', () => {
  const wrong = readProduct().flatMap((file) => {
    const found: string[] = []
    walk(parse(file).program, (node) => {
      if (node.type === 'TSTypePredicate' || !Array.isArray(node['params'])) return
      for (const parameter of node['params']) {
        if (isBoolean(parameter)) found.push(`${file.path}:${lineAt(file.text, parameter.start)}`)
      }
    })
    return found
  })
  assert.deepEqual(wrong, [], 'write two functions, or an options object')
})

function isBoolean(parameter: SyntaxNode): boolean {
  const assigned = parameter.type === 'AssignmentPattern' ? (parameter['right'] as SyntaxNode) : null
  if (typeof assigned?.['value'] === 'boolean') return true
  const annotated = (assigned ? parameter['left'] : parameter) as SyntaxNode
  const annotation = annotated['typeAnnotation'] as { typeAnnotation?: SyntaxNode } | null | undefined
  return annotation?.typeAnnotation?.type === 'TSBooleanKeyword'
}
