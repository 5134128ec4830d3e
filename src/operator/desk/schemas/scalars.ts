// Small values of the desk's schemas.
import Type, { type Static, type TSchema } from 'typebox'

export const Uuid = Type.String({ pattern: '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' })
/** A `Date` in the code, ISO 8601 in UTC in the answer. */
export const Time = Type.Unsafe<Date>({ type: 'string', format: 'date-time' })

/** A value or null, as `type: [type, 'null']`. */
export function orNull<Schema extends TSchema & { type?: string }>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [schema.type, 'null'] })
}

/** A string that is one of the words. */
export function oneOf<const Words extends string[]>(words: Words) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words })
}

/** An object with exactly these members. */
export function exactly<const Members extends Record<string, TSchema>>(members: Members) {
  return Type.Object(members, { additionalProperties: false })
}

/** Confirms a request that cannot be undone: the name of the object that it deletes. */
export const Confirmation = exactly({ confirm: Type.String({ maxLength: 300 }) })
