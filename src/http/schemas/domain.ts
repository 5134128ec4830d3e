// Schemas of domains: as answers show them, as requests register them, and the result of a check.
import Type from 'typebox'
import { component, NextCursor, nullable, oneOf, patterned, Time, Uuid } from './scalars.ts'

export const DomainParams = Type.Object({ domainId: Uuid })

const at = '2026-11-21T09:00:00.000Z'
const recordExample = {
  purpose: 'ownership',
  type: 'TXT',
  name: '_posthorn-challenge.example.com',
  value: 'posthorn-challenge=7c9e6679f5a24f0b9d2c3e1a8b4d5f60718293a4',
  priority: null,
  required: true,
  status: 'valid',
  observed: ['posthorn-challenge=7c9e6679f5a24f0b9d2c3e1a8b4d5f60718293a4'],
  checkedAt: at,
}
const capabilitiesExample = {
  outbound: { status: 'verified', reasons: [], checkedAt: at },
  inbound: { status: 'pending', reasons: ['example.com has no MX record.'], checkedAt: at },
}
const example = {
  id: '0199a1b2-3c4d-7e5f-8071-92a3b4c5d6e7',
  domain: 'example.com',
  status: 'verified',
  records: [recordExample],
  capabilities: capabilitiesExample,
  createdAt: at,
  updatedAt: at,
  verifiedAt: at,
}

const DomainRecord = component(
  'DomainRecord',
  Type.Object(
    {
      purpose: oneOf(
        ['ownership', 'dkim', 'mx', 'return_path', 'spf', 'dmarc', 'mta_sts', 'tls_rpt'],
        'The purpose of the record.',
      ),
      type: oneOf(['TXT', 'MX'], 'The record type in DNS.'),
      name: Type.String({ description: 'The full name, without a trailing dot.' }),
      value: Type.String({ description: 'The text, unquoted and in one piece, or the host of an MX.' }),
      priority: nullable(Type.Integer({ description: 'The priority of an MX.' })),
      required: Type.Boolean({
        description: 'False: recommended, or no longer needed.',
      }),
      status: oneOf(
        ['pending', 'valid', 'missing', 'mismatch', 'error'],
        'Result of the newest check. `error`: the lookup failed.',
      ),
      observed: Type.Array(Type.String(), {
        description: 'The values found in DNS, at most 20. Long values are cut.',
      }),
      checkedAt: nullable(Time),
    },
    { description: 'A record to publish.', examples: [recordExample] },
  ),
)

const Capability = component(
  'Capability',
  Type.Object(
    {
      status: oneOf(['pending', 'verified', 'failed'], 'Lost only after three failed checks over 72 hours.'),
      reasons: Type.Array(Type.String(), { description: 'Current problems with the records, for people.' }),
      checkedAt: nullable(Time),
    },
    {
      description: 'Sending or receiving.',
      examples: [capabilitiesExample.inbound],
    },
  ),
)

const DomainCapabilities = component(
  'DomainCapabilities',
  Type.Object(
    { outbound: Capability.ref, inbound: Capability.ref },
    { description: 'Sending and receiving.', examples: [capabilitiesExample] },
  ),
)

export const Domain = component(
  'Domain',
  Type.Object(
    {
      id: Uuid,
      domain: patterned('writtenDomain', {
        format: 'hostname',
        maxLength: 253,
        description: 'The domain name, in ASCII and lower case.',
      }),
      status: oneOf(
        ['pending', 'verified', 'failed'],
        'State of the ownership. `failed`: verified earlier, lost now.',
      ),
      records: Type.Array(DomainRecord.ref, { description: 'The records to publish in DNS.' }),
      capabilities: DomainCapabilities.ref,
      createdAt: Time,
      updatedAt: Time,
      verifiedAt: nullable(Time),
    },
    { description: 'Your own domain, with the records to publish.', examples: [example] },
  ),
)

export const NewDomain = component(
  'NewDomain',
  Type.Object(
    {
      domain: patterned('domain', {
        minLength: 1,
        maxLength: 253,
        description:
          'Fully qualified, below a public suffix. Normalized: trimmed, one trailing dot removed, ASCII (IDNA 2008), lower case.',
      }),
    },
    {
      additionalProperties: false,
      description: 'The domain to register.',
      examples: [{ domain: 'example.com' }],
    },
  ),
)

export const DomainList = component(
  'DomainList',
  Type.Object(
    { domains: Type.Array(Domain.ref), nextCursor: NextCursor },
    { description: 'Domains, newest first.', examples: [{ domains: [example], nextCursor: null }] },
  ),
)

export const DomainCheck = component(
  'DomainCheck',
  Type.Object(
    { domain: Domain.ref, checks: Type.Array(DomainRecord.ref), capabilities: DomainCapabilities.ref },
    {
      description: 'The result of a check.',
      examples: [{ domain: example, checks: [recordExample], capabilities: capabilitiesExample }],
    },
  ),
)

export const zoneExample = `; example.com

; to prove that example.com is yours: it changes nothing for your mail
_posthorn-challenge.example.com. 3600 IN TXT "${recordExample.value}"

; to receive: all mail to example.com comes here from then on; leave it out if you only send
example.com. 3600 IN MX 10 mx.example.net.
`

export const domainComponents = [
  DomainRecord,
  Capability,
  DomainCapabilities,
  Domain,
  NewDomain,
  DomainList,
  DomainCheck,
]
