// Domains whose mail servers are of every kind: present, absent, private, silent, our own.
import type { ZoneRecords } from './dns-server.ts'

export const mxZone: Record<string, ZoneRecords> = {
  'ordered.example': {
    MX: [
      [20, 'backup.example'],
      [10, 'one.example'],
    ],
  },
  'one.example': { A: ['8.8.1.1', '8.8.1.2'], AAAA: ['2a00::1'] },
  'backup.example': { AAAA: ['2a00::2'] },
  'plain.example': { A: ['8.8.2.1'], TXT: ['no MX here'] },
  'null.example': { MX: [[0, '.']], A: ['8.8.3.1'] },
  'half-null.example': {
    MX: [
      [0, '.'],
      [10, 'one.example'],
    ],
  },
  'cname.example': { MX: [[5, 'alias.example']] },
  'alias.example': { CNAME: 'plain.example' },
  'alias-domain.example': { CNAME: 'ordered.example' },
  'loop.example': { CNAME: 'loop.example' },
  'empty.example': { TXT: ['neither MX nor address'] },
  'dangling.example': { MX: [[10, 'gone.example']] },
  'literal.example': { MX: [[10, '8.8.4.4']] },
  'inward.example': { MX: [[10, 'inward-host.example']] },
  'inward-host.example': { A: ['127.0.0.1', '10.1.2.3'], AAAA: ['::1', 'fd00::1'] },
  'partly-inward.example': {
    MX: [
      [10, 'inward-host.example'],
      [20, 'plain.example'],
    ],
  },
  'broken.example': { MX: [[10, 'one.example']] },
  'broken-host.example': { MX: [[10, 'servfail.example']] },
  'half-broken.example': {
    MX: [
      [10, 'servfail.example'],
      [20, 'plain.example'],
    ],
  },
  'silent.example': { MX: [[10, 'one.example']] },
  'equal.example': { MX: ['a', 'b', 'c', 'd'].map((name) => [10, `${name}.equal.example`]) },
  ...Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`${name}.equal.example`, { A: ['8.8.5.1'] }])),
  'many.example': {
    MX: Array.from({ length: 100 }, (_, index) => [100 - index, `mx${index}.many.example`]),
  },
  ...Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [
      `mx${index}.many.example`,
      { A: ['8.8.6.1', '8.8.6.2', '8.8.6.3'] },
    ]),
  ),
  // Names without an address, followed by one with an address.
  ...Object.fromEntries(
    [1, 17, 120].map((dead) => [
      `after-${dead}.example`,
      {
        MX: [
          ...Array.from({ length: dead }, (_, index): [number, string] => [index, `dead${index}.example`]),
          [dead, 'plain.example'],
        ],
      },
    ]),
  ),
  'unanswered.example': {
    MX: Array.from({ length: 100 }, (_, index) => [index, `mx${index}.unanswered.example`]),
  },
  'partly-unanswered.example': {
    MX: [
      [10, 'plain.example'],
      ...Array.from({ length: 19 }, (_, n): [number, string] => [20 + n, `mx${n}.unanswered.example`]),
    ],
  },
  'ours.example': { A: ['8.8.9.1'] },
  'half-moved.example': {
    MX: [
      [10, 'ours.example'],
      [20, 'plain.example'],
    ],
  },
  'at-our-address.example': {
    MX: [
      [10, 'other-name.example'],
      [10, 'plain.example'],
    ],
  },
  'other-name.example': { A: ['8.8.9.1'] },
  'we-are-backup.example': {
    MX: [
      [30, 'one.example'],
      [20, 'ours.example'],
      [20, 'backup.example'],
      [10, 'plain.example'],
    ],
  },
  'bare.example': { A: ['8.8.9.1'] },
  'below-unknown.example': {
    MX: [
      [10, 'servfail.example'],
      [20, 'ours.example'],
    ],
  },
  'among-equals.example': {
    MX: [
      ...Array.from({ length: 39 }, (_, n): [number, string] => [10, `mx${n}.many.example`]),
      [10, 'ours.example'],
    ],
  },
  'split-horizon.example': {
    MX: [
      [10, 'inward-host.example'],
      [20, 'plain.example'],
    ],
  },
  'short.example': { A: ['8.8.7.1'], ttlSeconds: 10 },
  'fleeting.example': { A: ['8.8.8.1'], ttlSeconds: 0 },
  'moving.example': { MX: [[10, 'one.example']], ttlSeconds: 10 },
}
