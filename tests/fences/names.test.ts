// Checks that the first line of every file says what the file is for, and that no name is an empty word.
import assert from 'node:assert/strict'
import { basename } from 'node:path'
import { test } from 'node:test'
import {
  isNode,
  lineAt,
  parse,
  readProduct,
  readSources,
  type SourceFile,
  type SyntaxNode,
  walk,
} from './source.ts'

const empty =
  /^(process(es|ed|ing|or)?|handle(s|d|r|rs)?|manage(s|r|rs)?|data|info|helpers?|utils?|services?)$/
/** Private words for which the field has a word. CONTRIBUTING.md has the glossary. */
const ownWords =
  /^(tell(s|ing)?|told|look(s|ed|ing)?|places?|placed|turns?|judg(e|es|ed|ing|ement)|crowd(s|ed|ing)?|gather(s|ed|ing)?|rouse[rs]?|heed(s|ed)?|muted|shown|fresh|beside)$/
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

/** Returns the names a file declares: functions, classes, types, variables, parameters and members. */
function declaredNames(file: SourceFile): { name: string; at: string }[] {
  const found: { name: string; at: string }[] = []
  const add = (node: unknown) => {
    if (!isNode(node)) return
    const name = node['name']
    if (typeof name === 'string') found.push({ name, at: `${file.path}:${lineAt(file.text, node.start)}` })
  }
  walk(parse(file).program, (node) => {
    if (/^(Function|Class|VariableDeclarator|TSInterface|TSTypeAlias|TSEnum)/.test(node.type)) add(node['id'])
    if (/^(MethodDefinition|PropertyDefinition|TSPropertySignature|TSMethodSignature)$/.test(node.type))
      add(node['key'])
    for (const parameter of (node['params'] as unknown[] | undefined) ?? []) add(parameter)
  })
  return found
}

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
  const silent = readSources('{src,tests,bench,scripts}/**/*.ts').filter(
    ({ text }) => !/^\/\/ \S.*\S\s/.test(text),
  )
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
    'begin with `// ` and its purpose',
  )
})

test('fences: files are kebab-case, and none is called util, helper or index', () => {
  const files = readSources('{src,tests,bench,scripts}/**/*.ts').map(({ path }) => path)
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
  assert.deepEqual(wrong, [], 'name the thing or the deed')
})

test('fences: names use the field’s words', () => {
  const wrong = readProduct().flatMap((file) =>
    declaredNames(file)
      .filter(({ name }) => !granted.has(name) && words(name).some((word) => ownWords.test(word)))
      .map(({ name, at }) => `${at} ${name}`),
  )
  assert.deepEqual(wrong, [], 'CONTRIBUTING.md has the word')
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
