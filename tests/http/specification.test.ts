// Compares the document row by row with the published specification and with later decisions.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { errorTable } from '../../src/http/errors.ts'
import { type Operation, operationsOf, readDocument, type Schema } from './document.ts'
import { setStage } from './stage.ts'

const testdata = process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata'
const folder = join(resolve(import.meta.dirname, '../..', testdata), '../spec')
const skip = existsSync(folder) ? false : `${folder} is absent`
const read = (name: string) => (skip ? '' : readFileSync(join(folder, name), 'utf8'))
const specification = read('specification.md')
const decisions = read('decisions.md')

const stage = await setStage({ after })
const document = await readDocument(stage.base)
const operations = operationsOf(document)

interface Table {
  heading: string
  columns: string[]
  rows: string[][]
}

/** Returns every table with the heading above it. */
function readTables(text: string): Table[] {
  const tables: Table[] = []
  let heading = ''
  let table: Table | null = null
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) heading = line.replace(/^#+ /, '')
    if (!line.startsWith('|')) table = null
    else {
      const cells = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim())
      if (!table) tables.push((table = { heading, columns: cells, rows: [] }))
      else if (!cells.every((cell) => /^-+$/.test(cell))) table.rows.push(cells)
    }
  }
  return tables
}

const tables = readTables(specification)
const tableOf = (heading: string) => tables.find((table) => table.heading.startsWith(heading))!
const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, word]) => word!)

function resolveSchema(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!
}

const typesOf = ({ type }: Schema) => [type ?? []].flat()

/** Returns the schema at a path such as `organization.id`, and whether every step of the path is required. */
function find(schema: Schema, path: string): { schema: Schema; isRequired: boolean } | null {
  let found = { schema: resolveSchema(schema), isRequired: true }
  for (const name of path.split('.')) {
    const { properties = {}, required = [] } = found.schema
    if (!properties[name]) return null
    found = {
      schema: resolveSchema(properties[name]),
      isRequired: found.isRequired && required.includes(name),
    }
  }
  return found
}

/** Checks a schema against what a cell says about it. */
function judge(where: string, schema: Schema, says: string): void {
  const types = typesOf(schema)
  const [, least, most] = /(\d+) to (\d+)/.exec(says) ?? []
  const bounds = (low: string, high: string) => [schema[low], schema[high]]
  const must = (holds: unknown, what: string) =>
    assert.ok(holds, `${where}: ${what}: ${JSON.stringify(schema)}`)
  if (/\binteger/.test(says)) must(types.includes('integer'), 'an integer')
  if (/\bboolean/.test(says)) must(types.includes('boolean'), 'a boolean')
  if (/^(?:required )?(?:string|timestamp)/.test(says)) must(types.includes('string'), 'a string')
  if (/\btimestamp/.test(says)) must(schema['format'] === 'date-time', 'a time')
  if (/\bUUID/.test(says)) must(schema['format'] === 'uuid', 'a UUID')
  if (/\barray of/.test(says)) must(types.includes('array'), 'an array')
  if (/^object/.test(says)) must(types.includes('object'), 'an object')
  if (/^Mailbox/.test(says)) must(schema.properties?.['email'], 'a mailbox')
  if (/array of Mailbox/.test(says)) must(resolveSchema(schema.items!).properties?.['email'], 'mailboxes')
  if (/array of Message/.test(says))
    must(resolveSchema(schema.items!).properties?.['internetMessageId'], 'messages')
  if (/\bemail format/.test(says)) must(/email$/.test(String(schema['format'])), 'an address')
  if (/\bor null/.test(says)) must(types.includes('null'), 'nullable')
  else if (types.length > 0) must(!types.includes('null'), 'not nullable')
  if (least && /integer/.test(says))
    assert.deepEqual(bounds('minimum', 'maximum'), [Number(least), Number(most)], where)
  else if (least && /array|items/.test(says))
    assert.deepEqual(bounds('minItems', 'maxItems'), [Number(least), Number(most)], where)
  else if (least) assert.deepEqual(bounds('minLength', 'maxLength'), [Number(least), Number(most)], where)
  const each = /each (\d+) to (\d+) characters/.exec(says)
  if (each)
    assert.deepEqual(
      [schema.items!['minLength'], schema.items!['maxLength']],
      each.slice(1).map(Number),
      where,
    )
  const longest = /\bmax(?: length)? (\d+)/.exec(says)
  if (longest) assert.equal(schema['maxLength'], Number(longest[1]), where)
  const standard = /default (\d+)/.exec(says)
  if (standard) assert.equal(schema['default'], Number(standard[1]), where)
  const pattern = /`(\^.+?\$)`/.exec(says)
  if (pattern) assert.equal(schema['pattern'], pattern[1], where)
}

/** Returns each name in a cell with the text in its parentheses, which may be nested. */
function remarks(text: string): [name: string, says: string][] {
  const found: [string, string][] = []
  for (const { 1: name, index, 0: all } of text.matchAll(/`([A-Za-z][\w-]*)`(?: \()?/g)) {
    let [depth, end] = [all.endsWith('(') ? 1 : 0, index + all.length]
    const start = end
    for (; depth > 0; end++) depth += text[end] === '(' ? 1 : text[end] === ')' ? -1 : 0
    found.push([name!, text.slice(start, Math.max(start, end - 1))])
  }
  return found
}

const endpoints = tables.filter(({ columns }) => columns[0] === 'Method, path').flatMap(({ rows }) => rows)

function operationOf(cell: string): { name: string; operation: Operation } {
  const [, method, path] = /^(\w+) `(.+)`$/.exec(cell)!
  const found = operations.find((one) => one.method === method && one.path === path)
  assert.ok(found, `${cell} is not in the document`)
  return { name: `${method} ${path}`, operation: found.operation }
}

const bodyOf = ({ requestBody }: Operation) => {
  const schema = requestBody?.content['application/json']?.schema
  return schema && resolveSchema(schema)
}

test('check 71: every operation of the specification has its scope, its success and its errors', {
  skip,
}, () => {
  assert.equal(endpoints.length, 27)
  for (const [cell, scope, , success, errors] of endpoints as [string, string, string, string, string][]) {
    const { name, operation } = operationOf(cell)
    assert.deepEqual(operation.security, [{ apiKey: [] }], name)
    assert.deepEqual(operation['x-scopes'], scope.startsWith('none') ? [] : quoted(scope), name)
    const statuses = Object.keys(operation.responses)
    const [status] = /^\d{3}/.exec(success)!
    assert.deepEqual(
      statuses.filter((one) => one < '400'),
      [status],
      name,
    )
    assert.equal(operation.responses[status]!.content === undefined, success.includes('no body'), name)
    const listed: string[] = errors.match(/\b[45]\d\d\b/g) ?? []
    const documented = statuses.filter((one) => one >= '400')
    for (const one of listed) assert.ok(documented.includes(one), `${name} ${one}`)
    // Any body can be larger than the service reads, whether the specification lists a limit or not.
    const more = documented.filter(
      (one) => !listed.includes(one) && !(one === '413' && operation.requestBody),
    )
    if (!errors.includes('not shown') && !errors.includes('not listed')) assert.deepEqual(more, [], name)
  }
})

test('check 71, 73: every parameter and every property of a request has its rules', { skip }, () => {
  let held = 0
  for (const [cell, , request] of endpoints as [string, string, string][]) {
    const { name, operation } = operationOf(cell)
    const body = bodyOf(operation)
    for (const [field, says] of remarks(request)) {
      const parameter = operation.parameters?.find((one) => one.name === field)
      const property = body?.properties?.[field]
      assert.ok(parameter || property, `${name}: ${field}`)
      const where = `${name} ${field}`
      judge(where, parameter?.schema ?? resolveSchema(property!), says)
      const isRequired = parameter ? parameter.required : body!.required?.includes(field)
      if (/\brequired\b/.test(says) || parameter?.in === 'path') assert.ok(isRequired, where)
      if (request.includes('all optional') || parameter?.in === 'query') assert.ok(!isRequired, where)
      held++
    }
    if (/^body|no extra properties/.test(request)) assert.equal(body?.['additionalProperties'], false, name)
  }
  assert.ok(held > 40, `${held}`)
})

test('check 73: the body of POST /v1/send has exactly the specification’s fields', { skip }, () => {
  const body = bodyOf(operationOf('POST `/v1/send`').operation)!
  const rows = tableOf('Lower-level send')
  const { rows: fields } = tables.find(
    ({ heading, columns }) => heading === rows.heading && columns[0] === 'Field',
  )!
  assert.deepEqual(Object.keys(body.properties!).sort(), fields.map(([field]) => quoted(field!)[0]!).sort())
  for (const [cell, type, rules] of fields as [string, string, string][]) {
    const [name] = quoted(cell) as [string]
    const schema = resolveSchema(body.properties![name]!)
    judge(name, schema, `${type}; ${rules.split(';')[0] === 'optional' ? '' : rules}`)
    assert.equal(body.required!.includes(name), rules.startsWith('required'), name)
  }
  const { headers, purpose, to } = body.properties!
  assert.deepEqual([to!['minItems'], to!['maxItems']], [1, 1000])
  assert.deepEqual(Object.keys(headers!.properties!), ['x-campaign', 'x-campaign-id', 'x-entity-ref-id'])
  assert.deepEqual([headers!['maxProperties'], headers!['additionalProperties']], [3, false])
  for (const value of Object.values(headers!.properties!))
    assert.deepEqual([value['maxLength'], value['pattern']], [998, '^[^\\r\\n]*$'])
  assert.deepEqual(resolveSchema(purpose!).enum, ['transactional', 'marketing'])
  const choice = body['oneOf'] as Schema[]
  assert.deepEqual(
    choice.map(({ required, not }) => [required, (not as Schema | undefined)?.required]),
    [
      [['text'], undefined],
      [['html'], ['text']],
    ],
  )
})

const resources: [heading: string, component: string, table?: number][] = [
  ['Tenant access profile', 'Profile'],
  ['Inbox', 'Inbox'],
  ['Mailbox', 'Mailbox'],
  ['Message', 'Message'],
  ['Message', 'InboundSecurity', 1],
  ['Thread', 'Thread'],
  ['Delivery submission', 'Submission'],
  ['Send acceptance envelope', 'Acceptance'],
  ['Inbox export page', 'InboxExport'],
]

/** Returns the names in a cell. A name that starts with a dot continues the stem of the first name. */
function namesOf(cell: string): string[] {
  const [first = '', ...others] = quoted(cell)
  const stem = first.slice(0, first.lastIndexOf('.'))
  return [first, ...others.map((name) => (name.startsWith('.') ? stem + name : name))]
}

for (const [heading, component, place = 0] of resources)
  test(`check 71: ${component} has every field of the specification’s ${heading}`, { skip }, () => {
    const inSection = tables.filter(
      (table) => table.heading === heading || table.heading.startsWith(`${heading} (`),
    )
    const { rows } = inSection[place]!
    for (const [cell, says] of rows as [string, string][])
      for (const name of namesOf(cell)) {
        const found = find(document.components.schemas[component]!, name)
        assert.ok(found, `${component}.${name}`)
        const where = `${component}.${name}`
        const [whole, ...members] = says.split(/(?<=^array of objects): /)
        judge(where, found.schema, whole!.replace(/restricting.*or null/, 'or null'))
        for (const [member, rules] of members.flatMap(remarks).filter(([, rules]) => rules))
          judge(
            `${where}.${member}`,
            resolveSchema(resolveSchema(found.schema.items!).properties![member]!),
            rules,
          )
        const isOptional = /\bpresent (?:on|when)|\(optional\)/.test(says)
        assert.equal(found.isRequired, !isOptional, where)
        const values = /values? `|^(?:`|string: `)|occurs?\)/.test(says) ? quoted(says) : []
        for (const value of values)
          if (found.schema.enum && !/scan summary/.test(value))
            assert.ok(found.schema.enum.includes(value), `${where} ${value}`)
      }
  })

/** Properties that decisions add to a resource of the specification. */
const added: Record<string, string[]> = {
  Message: ['automatic', 'bcc', 'cc', 'extractedText', 'truncated'],
  InboundSecurity: ['spam', 'listedBy', 'content'],
}

for (const component of new Set(resources.map(([, name]) => name)))
  test(`check 71: ${component} has no field beyond the specification’s`, { skip }, () => {
    const known = resources
      .filter(([, name]) => name === component)
      .flatMap(([heading, , place = 0]) => {
        const inSection = tables.filter(
          (table) => table.heading === heading || table.heading.startsWith(`${heading} (`),
        )
        return inSection[place]!.rows.flatMap(([cell]) => namesOf(cell!))
      })
    const names = new Set([...known.map((name) => name.split('.')[0]!), ...(added[component] ?? [])])
    assert.deepEqual(
      Object.keys(document.components.schemas[component]!.properties!).sort(),
      [...names].sort(),
    )
  })

test('check 71: the document has every pattern and id of the specification', { skip }, () => {
  const written = JSON.stringify(document)
  const patterns = quoted(specification).filter((text) => /^\^.+\$$/.test(text))
  assert.ok(patterns.length >= 5)
  for (const pattern of patterns) assert.ok(written.includes(JSON.stringify(pattern)), pattern)
  const { schema, required } = operationOf('POST `/v1/send`').operation.parameters!.find(
    ({ name }) => name === 'idempotency-key',
  )!
  assert.deepEqual([schema['minLength'], schema['maxLength'], required], [8, 200, true])
})

const identifiers: Record<string, RegExp> = {
  inboxId: /^\^inb_/,
  threadId: /^\^thr_/,
  messageId: /^\^msg_/,
  attachmentId: /^\^att_/,
  webhookId: /^\^whk_/,
  submissionId: /^\^\[0-9a-fA-F\]\{8\}/,
  domainId: /^\^\[0-9a-fA-F\]\{8\}/,
  deliveryId: /^\^\[0-9a-fA-F\]\{8\}/,
}

test('check 68: every id in a path has its pattern', () => {
  for (const { path, operation } of operations)
    for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
      const { schema, required } = operation.parameters!.find(
        (one) => one.in === 'path' && one.name === name,
      )!
      assert.match(String(schema['pattern']), identifiers[name!]!, `${path} ${name}`)
      assert.equal(required, true)
    }
})

/** Codes of settings that came after the published decisions: of `confirmNewRecipients` of a key. */
const laterCodes: Record<string, string[]> = { 403: ['recipient_not_confirmed'] }

test('check 71: errors have the decided form, statuses and codes', { skip }, () => {
  const { properties, required, additionalProperties } = document.components.schemas['ErrorBody']!
  assert.deepEqual(
    [Object.keys(properties!), required],
    [
      ['error', 'message'],
      ['error', 'message'],
    ],
  )
  assert.equal(additionalProperties, false)
  const found = new Map<string, Set<string>>()
  for (const { operation } of operations)
    for (const [status, { content }] of Object.entries(operation.responses).filter(([one]) => one >= '400'))
      for (const code of Object.keys(content!['application/json']!.examples!))
        found.set(status, (found.get(status) ?? new Set()).add(code))
  const listed = tables.find(({ heading, columns }) => heading === 'Errors' && columns[0] === 'Status')!
  assert.deepEqual(
    listed.rows.map(([status]) => status),
    [...found.keys()].sort(),
  )
  const decided = readTables(decisions).find(({ heading }) => heading === 'Error codes')!
  const codes = decided.rows.map(([status, cell]) => {
    const all = quoted(cell!.replaceAll(/\([^)]*\)/g, '')).filter(
      (code) => code in errorTable || !code.includes('-'),
    )
    const codes = new Set([...all, ...(laterCodes[status!] ?? [])])
    return [status!, [...codes].filter((code) => code !== 'route_not_found').sort()] as const
  })
  assert.deepEqual(
    codes,
    [...found].sort().map(([status, set]) => [status, [...set].sort()]),
  )
})

/** The exact field list of each resource for which the decisions give one. */
const decided: Record<string, string> = {
  Attachment: 'id filename contentType size disposition contentId sha256 scanState',
  DeliveryEvent:
    'id submissionId recipient type at attempt remote response enhancedStatus classification failureCode',
  DeliveryMetrics: 'windowHours from to totals rates latencyMs series topDestinations',
  Suppression: 'email reason submissionId createdAt',
  Complaint: 'id email submissionId messageId feedbackType userAgent reportedBy arrivedAt createdAt',
  Domain: 'id domain status records capabilities createdAt updatedAt verifiedAt',
  DomainRecord: 'purpose type name value priority required status observed checkedAt',
  Capability: 'status reasons checkedAt',
  DomainCheck: 'domain checks capabilities',
  DomainTraffic: 'domainId domain status reasons usage limits',
  Webhook: 'id url eventTypes description status createdAt updatedAt',
  WebhookWithSecret: 'id url eventTypes description status secret createdAt updatedAt',
  WebhookDelivery:
    'id webhookId eventId type status attempts lastAttemptAt nextAttemptAt request responseStatus responseBody error createdAt',
  Validation: 'email normalized verdict reason checks suggestion mxHosts',
  GivenAttachment: 'filename contentType content contentId',
  NewMessage: 'to cc bcc replyTo subject text html attachments metadata purpose',
  NewReply: 'targetMessageId replyAll text html attachments metadata purpose',
  SendAcceptance:
    'id from recipients subject metadata status queueId response failureCode createdAt updatedAt purpose replayed',
  ThreadSummary: 'id inboxId subject participants messageCount lastMessageAt',
}

const inside: [path: string, fields: string][] = [
  ['DeliveryEvent.remote', 'host ip tls'],
  [
    'DeliveryMetrics.totals',
    'accepted recipients delivered deferred bounced failed suppressed complained received',
  ],
  ['DeliveryMetrics.rates', 'delivery bounce complaint'],
  ['DeliveryMetrics.latencyMs', 'p50 p95 p99'],
  ['DeliveryMetrics.series', 'at accepted delivered deferred bounced failed complained received'],
  ['DeliveryMetrics.topDestinations', 'domain recipients delivered bounced deferred'],
  [
    'DomainTraffic.usage',
    'sentLastMinute sentToday recipientsToday receivedToday bounceRate24h complaintRate24h',
  ],
  ['DomainTraffic.limits', 'messagesPerMinute messagesPerDay recipientsPerDay'],
  ['Validation.checks', 'syntax domain mx nullMx disposable role freeProvider mailbox'],
]

const sorted = (words: string) => words.split(' ').sort()

test('check 71: the document has every decided field, and no other', () => {
  for (const [component, fields] of Object.entries(decided))
    assert.deepEqual(
      Object.keys(document.components.schemas[component]!.properties!).sort(),
      sorted(fields),
      component,
    )
  for (const [path, fields] of inside) {
    const [component, field] = path.split('.') as [string, string]
    const { schema } = find(document.components.schemas[component]!, field)!
    const { properties } = schema.items ? resolveSchema(schema.items) : schema
    assert.deepEqual(Object.keys(properties!).sort(), sorted(fields), path)
  }
})

const words: [path: string, values: string][] = [
  ['Profile.apiKey.kind', 'agent server dashboard'],
  ['Profile.apiKey.sendMode', 'new_and_reply reply_only'],
  ['Profile.organization.status', 'pending active suspended'],
  ['Inbox.domainKind', 'managed customer'],
  ['Message.direction', 'inbound outbound'],
  ['Message.delivery.status', 'submitted delivered partially_delivered failed received'],
  [
    'Message.delivery.failureCode',
    'hard_bounce soft_bounce_expired policy_rejected suppressed domain_not_found null_mx tls_required inbox_deleted cancelled internal_error',
  ],
  ['Attachment.disposition', 'attachment inline'],
  ['Attachment.scanState', 'unscanned clean infected failed'],
  ['InboundSecurity.attachments', 'none unscanned clean infected failed'],
  [
    'InboundSecurity.authentication.dkim',
    'pass fail softfail neutral none policy temperror permerror not_evaluated',
  ],
  ['Submission.status', 'pending delivered partially_delivered failed'],
  [
    'DeliveryEvent.type',
    'accepted queued attempted deferred delivered bounced failed suppressed complained cancelled',
  ],
  [
    'DeliveryEvent.classification',
    'hard_bounce mailbox_full policy spam greylisted rate_limited network dns tls protocol expired other',
  ],
  ['Suppression.reason', 'manual hard_bounce complaint unsubscribe'],
  ['Complaint.feedbackType', 'abuse fraud virus not-spam other'],
  ['Domain.status', 'pending verified failed'],
  ['Capability.status', 'pending verified failed'],
  ['DomainRecord.purpose', 'ownership dkim mx return_path spf dmarc mta_sts tls_rpt'],
  ['DomainRecord.status', 'pending valid missing mismatch error'],
  ['DomainTraffic.status', 'normal limited paused'],
  ['Webhook.status', 'active disabled'],
  ['WebhookDelivery.status', 'pending succeeded failed'],
  ['Validation.verdict', 'deliverable risky undeliverable unknown'],
  [
    'Validation.reason',
    'accepted invalid_syntax domain_not_found no_mail_server null_mx disposable role_account possible_typo suppressed mailbox_not_found dns_error',
  ],
]

for (const [path, values] of words)
  test(`check 71: ${path} has the decided values`, () => {
    const [component, ...rest] = path.split('.') as [string, ...string[]]
    const { schema } = find(document.components.schemas[component]!, rest.join('.'))!
    assert.deepEqual(schema.enum!.filter((value) => value !== null).sort(), sorted(values))
    if (!skip)
      for (const value of sorted(values)) assert.ok((decisions + specification).includes(value), value)
  })

const queries: [operation: string, parameters: string][] = [
  ['GET /v1/inboxes', 'limit cursor domainId q'],
  ['GET /v1/inboxes/{inboxId}/threads', 'limit cursor'],
  ['GET /v1/inboxes/{inboxId}/messages', 'limit cursor direction from since until q after wait'],
  ['GET /v1/submissions', 'limit cursor status recipient since until inboxId'],
  ['GET /v1/submissions/{submissionId}/events', 'limit cursor'],
  ['GET /v1/suppressions', 'limit cursor email'],
  ['GET /v1/complaints', 'limit cursor'],
  ['GET /v1/domains', 'limit cursor'],
  ['GET /v1/webhooks', 'limit cursor'],
  ['GET /v1/webhooks/{webhookId}/deliveries', 'limit cursor'],
]

for (const [name, parameters] of queries)
  test(`check 71, 76: ${name} takes ${parameters}, and answers a page`, () => {
    const [method, path] = name.split(' ') as [string, string]
    const { operation } = operations.find((one) => one.method === method && one.path === path)!
    const taken = operation.parameters!.filter((one) => one.in === 'query')
    assert.deepEqual(taken.map((one) => one.name).sort(), sorted(parameters))
    const { schema } = taken.find((one) => one.name === 'limit')!
    assert.deepEqual([schema['minimum'], schema['maximum'], schema['default']], [1, 100, 50])
    const page = resolveSchema(operation.responses['200']!.content!['application/json']!.schema)
    const [array, cursor] = Object.entries(page.properties!)
    assert.deepEqual(
      [typesOf(array![1]), cursor![0], page.required],
      [['array'], 'nextCursor', [array![0], 'nextCursor']],
    )
    if (!skip) assert.ok(decisions.includes(`\`${array![0]}\``), array![0])
  })
