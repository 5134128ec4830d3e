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
        'What it is for.',
      ),
      type: oneOf(['TXT', 'MX'], 'Its type in DNS.'),
      name: Type.String({ description: 'Absolute, without a dot at the end.' }),
      value: Type.String({ description: 'A text without quotes and in one piece, or the host of an MX.' }),
      priority: nullable(Type.Integer({ description: 'Of an MX.' })),
      required: Type.Boolean({ description: 'False: recommended, or no longer needed.' }),
      status: oneOf(
        ['pending', 'valid', 'missing', 'mismatch', 'error'],
        'What the newest check found. `error`: it could not be looked up.',
      ),
      observed: Type.Array(Type.String(), {
        description: 'What DNS gave, at most 20 values, long ones cut.',
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
      status: oneOf(
        ['pending', 'verified', 'failed'],
        'It is lost only after three failed checks over 72 hours.',
      ),
      reasons: Type.Array(Type.String(), { description: 'What is wrong with its records now, for people.' }),
      checkedAt: nullable(Time),
    },
    { description: 'What the domain may be used for.', examples: [capabilitiesExample.inbound] },
  ),
)

const Capabilities = Type.Object({ outbound: Capability.ref, inbound: Capability.ref })

export const Domain = component(
  'Domain',
  Type.Object(
    {
      id: Uuid,
      domain: patterned('writtenDomain', {
        format: 'hostname',
        maxLength: 253,
        description: 'The name, in ASCII and lower case.',
      }),
      status: oneOf(['pending', 'verified', 'failed'], 'Of its ownership. `failed`: proved once, gone now.'),
      records: Type.Array(DomainRecord.ref, { description: 'What to publish in DNS.' }),
      capabilities: Capabilities,
      createdAt: Time,
      updatedAt: Time,
      verifiedAt: nullable(Time),
    },
    { description: 'A domain of your own, with the records to publish.', examples: [example] },
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
          'Fully qualified, and below a public suffix. Trimmed, one dot at the end removed, made ASCII (IDNA 2008) and lower case.',
      }),
    },
    { additionalProperties: false, description: 'The name.', examples: [{ domain: 'example.com' }] },
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
    { domain: Domain.ref, checks: Type.Array(DomainRecord.ref), capabilities: Capabilities },
    {
      description: 'What a check found.',
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

export const domainComponents = [DomainRecord, Capability, Domain, NewDomain, DomainList, DomainCheck]
