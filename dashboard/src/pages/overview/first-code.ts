// The first steps as code, with this service's address and this organization's ids.
import { overview } from '../../texts/overview.ts'

type Codes = Record<string, string>

const base = location.origin
const inboxIdMark = 'inb_…'

export function inboxCode(localPart: string): Codes {
  return callCode('POST', '/v1/inboxes', { localPart })
}

export function sendCode(inboxId = inboxIdMark, address = `${overview.steps.inbox.suggested}@…`): Codes {
  const { subject, text } = overview.steps.send
  return callCode('POST', `/v1/inboxes/${inboxId}/messages`, { to: [{ email: address }], subject, text })
}

export function readCode(inboxId = inboxIdMark): Codes {
  return callCode('GET', `/v1/inboxes/${inboxId}/messages?direction=inbound`, null)
}

function callCode(method: 'GET' | 'POST', path: string, body: object | null): Codes {
  const json = body && JSON.stringify(body)
  return {
    curl: curlCode(method, path, json),
    TypeScript: typeScriptCode(method, path, body),
    Python: pythonCode(method, path, body),
  }
}

function curlCode(method: string, path: string, json: string | null): string {
  const head = `curl ${method === 'GET' ? '' : `-X ${method} `}'${base}${path}' \\\n  -H "x-api-key: $POSTHORN_KEY"`
  if (!json) return head
  return `${head} \\\n  -H 'content-type: application/json' \\\n  -d '${json.replaceAll("'", "'\\''")}'`
}

function typeScriptCode(method: string, path: string, body: object | null): string {
  const headers = ["    'x-api-key': process.env.POSTHORN_KEY!,"]
  if (body) headers.push("    'content-type': 'application/json',")
  return [
    `const answer = await fetch('${base}${path}', {`,
    ...(body ? [`  method: '${method}',`] : []),
    '  headers: {',
    ...headers,
    '  },',
    ...(body ? [`  body: JSON.stringify(${JSON.stringify(body)}),`] : []),
    '})',
    'console.log(await answer.json())',
  ].join('\n')
}

function pythonCode(method: string, path: string, body: object | null): string {
  const call = method === 'GET' ? 'get' : 'post'
  return [
    'import os, requests',
    '',
    `answer = requests.${call}(`,
    `    "${base}${path}",`,
    '    headers={"x-api-key": os.environ["POSTHORN_KEY"]},',
    ...(body ? [`    json=${JSON.stringify(body)},`] : []),
    ')',
    'print(answer.json())',
  ].join('\n')
}
