// The results that a check of a received mail can have (RFC 8601 2.7).

/** Each check uses the results that its RFC defines. */
export const authResults = [
  'pass',
  'fail',
  'softfail',
  'neutral',
  'none',
  'policy',
  'temperror',
  'permerror',
] as const
export type AuthResult = (typeof authResults)[number]
