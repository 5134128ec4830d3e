// Requests with exactly one breach of the document, and the answers that the service must give.
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { alternativesOf, type Operation, type Parameter, type Schema, typesOf } from './document.ts'
import { type Draft, fullExample, Live } from './generate.ts'
import { textKind } from './texts.ts'

/** How a breach changes a request before it is sent. `raw` replaces the body's JSON. */
export interface Breach {
  /** The fault in words, with its location. */
  what: string
  /** The service must give one of these answers. */
  answers: readonly (readonly [status: number, code: string])[]
  draft?: (draft: Draft) => Draft
  raw?: (json: Buffer, limitBytes: number) => Buffer
  headers?: Record<string, string | null>
  method?: string
  /** Rewrites the path as sent. */
  rewrite?: (path: string) => string
}

type Answers = Pick<Breach, 'answers'>

const refused: Answers = { answers: [[400, 'invalid_request']] }
const notJson: Answers = { answers: [[400, 'invalid_json']] }
const noRoute: Answers = { answers: [[404, 'route_not_found']] }
const noKey: Answers = { answers: [[401, 'unauthorized']] }
/** An empty id, for a path that ends in the id. */
const noRouteOrId: Answers = { answers: [...noRoute.answers, ...refused.answers] }

/** Returns every breach that applies to the operation. Breaches inside the body modify its full example. */
export function breachesOf(operation: Operation): Breach[] {
  const { body, parameters } = operation
  return [
    ...parameters.flatMap((parameter) => breachesOfParameter(parameter)),
    ...unknownParameters,
    ...otherRoutes(operation),
    ...(body ? [...wrongBodies, ...breachesOfBody(body)] : []),
    { what: 'another method', ...noRoute, method: 'PUT' },
    { what: 'no key', ...noKey, headers: { 'x-api-key': null } },
    { what: 'a wrong key', ...noKey, headers: { 'x-api-key': `ph_${'0'.repeat(49)}` } },
  ]
}

const unknownParameters: Breach[] = [
  ...[
    'surprise',
    'Limit',
    'limit[]',
    '__proto__',
    'constructor',
    'toString',
    'x-api-key',
    'organizationId',
    '',
  ].map(
    (name): Breach => ({
      what: `the unknown parameter ${JSON.stringify(name)}`,
      ...refused,
      draft: (draft) => ({ ...draft, query: [...draft.query, [name, '1']] }),
    }),
  ),
]

function otherRoutes({ path, parameters }: Operation): Breach[] {
  const inPath = parameters.some((parameter) => parameter.in === 'path')
  return [
    { what: 'a slash at the end', ...noRouteOrId, rewrite: (text) => `${text}/` },
    { what: 'capitals in the path', ...noRoute, rewrite: (text) => text.replace('/v1/', '/V1/') },
    { what: 'bad percent-encoding', ...noRoute, rewrite: (text) => `${text}%zz` },
    { what: 'another version', ...noRoute, rewrite: () => path.replace('/v1/', '/v2/') },
    ...(inPath
      ? [
          {
            what: 'an empty segment',
            ...noRouteOrId,
            rewrite: (text: string) => text.replace(/[a-z]+_[a-f0-9_]{24,}|[0-9a-f-]{36}/i, ''),
          },
        ]
      : []),
  ]
}

function breachesOfParameter(parameter: Parameter): Breach[] {
  if (parameter.in === 'path') return wrongPathIds(parameter)
  if (parameter.in === 'header') return wrongHeaders(parameter)
  const { name, schema } = parameter
  const code: Answers = name === 'cursor' ? { answers: [[400, 'invalid_cursor']] } : refused
  // A valid value: the request is refused only because the parameter comes twice.
  const right = String(schema.enum?.[0] ?? 1)
  const twice: Breach = {
    what: `${name} twice`,
    ...refused,
    draft: (draft) => {
      const value = draft.query.find(([other]) => other === name)?.[1] ?? right
      return { ...draft, query: [...without(draft.query, name), [name, value], [name, value]] }
    },
  }
  return [
    twice,
    ...wrongWords(schema, name).map(
      (word): Breach => ({
        what: `${name}=${shorten(word)}`,
        ...code,
        draft: (draft) => ({ ...draft, query: [...without(draft.query, name), [name, word]] }),
      }),
    ),
  ]
}

function without(query: Draft['query'], name: string): Draft['query'] {
  return query.filter(([other]) => other !== name)
}

/** Returns texts that are invalid for a query parameter. */
function wrongWords(schema: Schema, name: string): string[] {
  const { minimum, maximum, minLength = 0, maxLength } = schema
  if (name === 'cursor')
    return ['', 'x', 'A'.repeat(40), 'A'.repeat(5_000), '../../etc', '\u0000', 'null', '0', 'é']
  if (schema.enum) return ['', 'surprise', String(schema.enum[0]).toUpperCase(), `${schema.enum[0]} `]
  if (typesOf(schema).includes('integer'))
    return [
      ...[
        String(minimum! - 1),
        String(maximum! + 1),
        '05',
        '1e1',
        '+5',
        '-1',
        ' 5',
        '5 ',
        '5.0',
        '0x5',
        '',
        'x',
      ],
      ...['99999999999999999999', 'NaN', 'Infinity', 'null', '5\u0000', '٥'],
    ]
  const long = maxLength === undefined ? null : textKind(schema, name).ofLength(maxLength + 1)
  return [...textKind(schema, name).wrong, ...(long === null ? [] : [long]), ...(minLength > 0 ? [''] : [])]
}

function wrongPathIds({ name, schema }: Parameter): Breach[] {
  return [...textKind(schema, name).wrong, '\0', 'x'.repeat(3_000), '..%2f..', '%00', "' or 1=1"]
    .filter((text) => text !== '' && text !== '.' && text !== '..')
    .map((text) => ({
      what: `${name} ${shorten(text)}`,
      ...refused,
      draft: (draft) => ({ ...draft, path: { ...draft.path, [name]: text } }),
    }))
}

function wrongHeaders({ name, schema, required }: Parameter): Breach[] {
  // Any text may be an event id.
  if (schema.pattern === undefined) return []
  const { minLength = 0, maxLength = 200 } = schema
  const wrong = [
    '',
    'a'.repeat(minLength - 1),
    'a'.repeat(maxLength + 1),
    'with a space',
    '\xfcmlaut-key',
    'a,b,c,d,e',
    'a/b/c/d/e',
  ]
  const breach = (text: string | null): Breach => ({
    what: `the header ${name} ${text === null ? 'left out' : shorten(text)}`,
    answers: [[400, 'invalid_idempotency_key']],
    headers: { [name]: text },
  })
  return [...wrong.map(breach), ...(required ? [breach(null)] : [])]
}

const text = (value: string) => Buffer.from(value)
const wrongBodies: Breach[] = [
  ...(
    [
      ['an empty body', () => text('')],
      ['half a body', (json) => json.subarray(0, json.length - 1)],
      ['two bodies', (json) => Buffer.concat([json, json])],
      ['a byte order mark', (json) => Buffer.concat([text('\ufeff'), json])],
      ['UTF-16', (json) => Buffer.from(json.toString(), 'utf16le')],
      ['invalid UTF-8', (json) => Buffer.concat([json.subarray(0, -1), Buffer.from([0xc0, 0xaf, 0x7d])])],
      ['a comma at the end', (json) => Buffer.concat([json.subarray(0, -1), text(',}')])],
      ['a comment', (json) => Buffer.concat([json, text('// true')])],
      ['a raw NUL', (json) => Buffer.concat([json, text('\0')])],
      ['single quotes', () => text("{'a':1}")],
      ['NaN', () => text('{"a":NaN}')],
      ['an endless number', () => text(`{"a":${'9'.repeat(50_000)}x}`)],
      ['ten thousand brackets', () => text('['.repeat(10_000))],
      ['a form', () => text('a=b&c=d')],
    ] satisfies [string, (json: Buffer) => Buffer][]
  ).map(([what, raw]): Breach => ({ what, ...notJson, raw })),
  { what: 'no content-type', ...notJson, headers: { 'content-type': null } },
  ...[
    'text/plain',
    'application/jsonp',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
    'json',
  ].map(
    (type): Breach => ({ what: `the content-type ${type}`, ...notJson, headers: { 'content-type': type } }),
  ),
  {
    what: 'a body that is right, but compressed',
    ...notJson,
    raw: (json) => gzipSync(json),
    headers: { 'content-encoding': 'gzip' },
  },
  {
    what: 'a gzip bomb',
    ...notJson,
    raw: () => gzipSync(Buffer.alloc(1 << 20, 0x20)),
    headers: { 'content-encoding': 'gzip' },
  },
  {
    what: 'a body too large',
    answers: [[413, 'payload_too_large']],
    raw: (json, limitBytes) => Buffer.concat([json, Buffer.alloc(limitBytes + 1 - json.length, 0x20)]),
  },
  ...(['null', '[]', '"text"', '7', 'true', `${'['.repeat(10_000)}${']'.repeat(10_000)}`] as const).map(
    (json): Breach => ({ what: `the body ${shorten(json)}`, ...refused, raw: () => text(json) }),
  ),
]

type Place = (string | number)[]

/** A value in the body, with its schema and path. */
interface Site {
  place: Place
  schema: Schema
  value: unknown
}

/** Returns every site in the schema's full example, outermost first. */
export function sitesOf(schema: Schema): Site[] {
  return walk(schema, fullExample(schema), [])
}

function walk(schema: Schema, value: unknown, place: Place): Site[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    walk(member, (value as Record<string, unknown>)[name], [...place, name]),
  )
  if (schema.items && Array.isArray(value)) inner.push(...walk(schema.items, value[0], [...place, 0]))
  if (typeof schema.additionalProperties === 'object')
    inner.push(...walk(schema.additionalProperties, 'text', [...place, 'a']))
  return [{ place, schema, value }, ...inner]
}

function breachesOfBody(schema: Schema): Breach[] {
  const sites = sitesOf(schema)
  const example = sites[0]!.value
  return sites.flatMap((site) =>
    [
      ...wrongTypes(site),
      ...wrongTexts(site),
      ...wrongNumbers(site),
      ...wrongLists(site),
      ...wrongObjects(site),
    ].map(
      ([what, value, raw]): Breach => ({
        what: `/${site.place.join('/')} ${what}`,
        ...refused,
        draft: (draft) => ({ ...draft, body: replaceAt(example, site.place, value) }),
        ...(raw !== undefined && {
          raw: (json) => text(json.toString().replace(JSON.stringify(standIn), raw)),
        }),
      }),
    ),
  )
}

type Wrong = [what: string, value: unknown, raw?: string]
/** Placeholder for values that JSON.stringify cannot produce. The raw text replaces it. */
const standIn = 'stands in for raw JSON'

const ofEveryType: [type: string, value: unknown][] = [
  ['null', null],
  ['boolean', true],
  ['number', 7],
  ['string', 'text'],
  ['array', []],
  ['object', {}],
]

function wrongTypes({ schema, place }: Site): Wrong[] {
  if (place.length === 0) return []
  const types = typesOf(schema)
  const isNumber = types.includes('integer') || types.includes('number')
  return ofEveryType
    .filter(([type]) => !types.includes(type) && !(type === 'number' && isNumber))
    .map(([type, value]) => [`is of type ${type}`, value])
}

function wrongTexts({ schema, place }: Site): Wrong[] {
  if (!typesOf(schema).includes('string')) return []
  const { minLength = 0, maxLength } = schema
  const name = nameAt(place)
  const kind = schema.enum
    ? { ofLength: () => null, wrong: ['', 'surprise', `${schema.enum[0]} `] }
    : textKind(schema, name)
  const long = maxLength === undefined ? null : (kind.ofLength(maxLength + 1) ?? 'x'.repeat(maxLength + 1))
  return [
    ...kind.wrong.map((value): Wrong => [`is ${shorten(value)}`, value]),
    ...(long === null ? [] : [['is too long by one', long] satisfies Wrong]),
    ...(minLength > 0 ? [['is too short', ''] satisfies Wrong] : []),
    ['has a NUL', 'a\0b'],
    ['has half a surrogate pair', 'a\ud800b'],
    ['ends in half a surrogate pair', 'a\udbff'],
  ]
}

/** Returns the name of the property that holds the value. */
export function nameAt(place: Place): string {
  return String(place.filter((step) => typeof step === 'string').at(-1) ?? '')
}

function wrongNumbers({ schema }: Site): Wrong[] {
  const { minimum, maximum } = schema
  const types = typesOf(schema)
  if (!types.includes('integer') && !types.includes('number')) return []
  return [
    ['is endless', standIn, '1e400'],
    ...(minimum === undefined ? [] : [['is too small', minimum - 1] satisfies Wrong]),
    ...(maximum === undefined ? [] : [['is too large', maximum + 1] satisfies Wrong]),
    ...(types.includes('integer') ? [['is no whole number', 1.5] satisfies Wrong] : []),
  ]
}

function wrongLists({ schema, value }: Site): Wrong[] {
  if (!Array.isArray(value)) return []
  const { minItems = 0, maxItems, uniqueItems } = schema
  return [
    ...(minItems > 0 ? [['is empty', value.slice(0, minItems - 1)] satisfies Wrong] : []),
    ...(maxItems === undefined
      ? []
      : [['has one too many', listOfLength(schema, value[0], maxItems + 1)] satisfies Wrong]),
    ...(uniqueItems ? [['says one twice', [value[0], value[0]]] satisfies Wrong] : []),
  ]
}

/** Returns a list of `length` items, which differ if the schema requires unique items. */
export function listOfLength({ items, uniqueItems }: Schema, item: unknown, length: number): unknown[] {
  if (!uniqueItems) return Array.from({ length }, () => item)
  return items!.enum!.length >= length ? items!.enum!.slice(0, length) : [...items!.enum!, 'surprise']
}

function wrongObjects({ schema, value }: Site): Wrong[] {
  if (!typesOf(schema).includes('object')) return []
  const there = value as Record<string, unknown>
  const { required = [], additionalProperties, maxProperties, propertyNames } = schema
  const left = alternativesOf(schema).flat()
  const wrong: Wrong[] = [
    ...required.map((name): Wrong => [`has no ${name}`, leaveOut(there, [name])]),
    ...(left.length > 0 ? [[`has none of ${left.join(', ')}`, leaveOut(there, left)] satisfies Wrong] : []),
    ['names its prototype', withMember(there, '__proto__', { admin: true })],
    ['has a name with a NUL', withMember(there, 'a\0b', 1)],
  ]
  if (additionalProperties === false)
    for (const name of ['surprise', 'constructor', 'toString', 'hasOwnProperty', 'organizationId', '', 'id'])
      wrong.push([
        `has the unknown property ${JSON.stringify(name)}`,
        withMember(there, name, { prototype: { a: 1 } }),
      ])
  if (typeof additionalProperties === 'object') {
    const entries = Array.from({ length: maxProperties! + 1 }, (_, index) => [`k${index}`, index])
    wrong.push(['has one property too many', Object.fromEntries(entries)])
    for (const name of textKind(propertyNames!, '').wrong)
      wrong.push([`names one ${shorten(name)}`, { [name]: 1 }])
    const deep = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
    wrong.push(['is ten thousand deep', standIn, deep])
  }
  return wrong
}

function leaveOut(there: Record<string, unknown>, names: string[]): object {
  return Object.fromEntries(Object.entries(there).filter(([name]) => !names.includes(name)))
}

/** Adds an own property with any name, even `__proto__`. */
function withMember(there: Record<string, unknown>, name: string, value: unknown): object {
  return Object.fromEntries([...Object.entries(there), [name, value]])
}

/** Returns a copy of the value with another value at `place`. */
export function replaceAt(value: unknown, place: Place, other: unknown): unknown {
  const [step, ...rest] = place
  if (step === undefined) return other
  if (Array.isArray(value))
    return value.map((item, index) => (index === step ? replaceAt(item, rest, other) : item))
  if (value instanceof Live) throw new Error('there is nothing inside an id')
  const there = value as Record<string, unknown>
  return { ...there, [step]: replaceAt(there[step], rest, other) }
}

export function shorten(value: string): string {
  const written = JSON.stringify(value)
  return written.length <= 60 ? written : `${written.slice(0, 50)}… (${[...value].length} characters)`
}

/** Picks one of the breaches, each equally likely. */
export function breachArbitrary(breaches: Breach[]): fc.Arbitrary<Breach> {
  // Large bodies are rarer: a megabyte costs as much as a hundred other requests.
  const isLarge = ({ answers }: Breach) => answers[0]![0] === 413
  const [large, others] = [breaches.filter(isLarge), breaches.filter((breach) => !isLarge(breach))]
  const common = fc.constantFrom(...others)
  return large.length === 0 ? common : fc.oneof({ weight: 200, arbitrary: common }, fc.constantFrom(...large))
}
