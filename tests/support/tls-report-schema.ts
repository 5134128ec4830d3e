// The structure of a report about TLS, written from the text of RFC 8460 4.4, and a check of any value against it.
import assert from 'node:assert/strict'
import { isIP } from 'node:net'

interface Field {
  isOptional?: true
  check(value: unknown): void
}

const text: Field = { check: (value) => assert.ok(typeof value === 'string' && value !== '', `${value}`) }
const count: Field = {
  check: (value) => assert.ok(Number.isSafeInteger(value) && Number(value) >= 0, `${value}`),
}
/** RFC 3339 5.6, in UTC. */
const time: Field = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
const domain: Field = matching(/^[a-z0-9_*](?:[a-z0-9_.-]*[a-z0-9])?$/)
const ip: Field = { check: (value) => assert.notEqual(isIP(String(value)), 0, `${value}`) }

function matching(pattern: RegExp): Field {
  return { check: (value) => assert.match(String(value), pattern) }
}

function list(of: Field): Field {
  return {
    check: (value) => {
      assert.ok(Array.isArray(value) && value.length > 0)
      for (const one of value) of.check(one)
    },
  }
}

function optional(field: Field): Field {
  return { ...field, isOptional: true }
}

/** An object with these fields and no others. */
function object(fields: Record<string, Field>): Field {
  return {
    check: (value) => {
      assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${value}`)
      for (const name of Object.keys(value)) assert.ok(fields[name], `${name} is in no schema`)
      for (const [name, { isOptional, check }] of Object.entries(fields)) {
        const given = (value as Record<string, unknown>)[name]
        if (given === undefined) assert.ok(isOptional, `${name} is missing`)
        else check(given)
      }
    },
  }
}

const resultTypes = [
  ...[
    'starttls-not-supported',
    'certificate-host-mismatch',
    'certificate-expired',
    'certificate-not-trusted',
  ],
  ...['validation-failure', 'tlsa-invalid', 'dnssec-invalid', 'dane-required', 'sts-policy-fetch-error'],
  ...['sts-policy-invalid', 'sts-webpki-invalid'],
]

const failure = object({
  'result-type': matching(new RegExp(`^(?:${resultTypes.join('|')})$`)),
  'sending-mta-ip': optional(ip),
  'receiving-mx-hostname': optional(domain),
  'receiving-mx-helo': optional(text),
  'receiving-ip': optional(ip),
  'failed-session-count': count,
  'additional-information': optional(matching(/^https?:/)),
  'failure-reason-code': optional(text),
})

const policy = object({
  policy: object({
    'policy-type': matching(/^(?:tlsa|sts|no-policy-found)$/),
    'policy-string': optional(list(text)),
    'policy-domain': domain,
    'mx-host': optional(list(domain)),
  }),
  summary: object({ 'total-successful-session-count': count, 'total-failure-session-count': count }),
  'failure-details': optional(list(failure)),
})

const report = object({
  'organization-name': text,
  'date-range': object({ 'start-datetime': time, 'end-datetime': time }),
  'contact-info': text,
  'report-id': text,
  policies: list(policy),
})

/** Throws if the value is no report. */
export function assertTlsReport(value: unknown): void {
  report.check(value)
}
