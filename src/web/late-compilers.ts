// Compiles validators and serializers at their first use. At startup, compiling them took four fifths of the CPU time.
import AjvCompiler from '@fastify/ajv-compiler'
import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { FastifyServerOptions } from 'fastify'
import { isSmall } from './small-value.ts'

type BuildValidator = ReturnType<typeof AjvCompiler>
type BuildSerializer = ReturnType<typeof SerializerSelector>
type Validate = ReturnType<ReturnType<BuildValidator>>
type Serialize = ReturnType<ReturnType<BuildSerializer>>

/** Validation options of every server: requests are never changed to fit their schema. */
export const ajvOptions = {
  removeAdditional: false,
  coerceTypes: false,
  useDefaults: false,
  allErrors: false,
  // Adds the broken schema to each error. The error text of the answer is made from it.
  verbose: true,
  allowUnionTypes: true,
  strictTypes: false,
  // Compiling the schema of schemas takes 30 ms of each start. A test checks ours with it.
  validateSchema: false,
} as const

/**
 * Returns the value of the option `schemaController` for one server. A schema that cannot be compiled fails the requests
 * that need it. Validators stop at the first error, because one hostile value may have millions. A small value is checked
 * again to find all of its errors.
 */
export function lateCompilers(): NonNullable<FastifyServerOptions['schemaController']> {
  const compilersOf = AjvCompiler()
  const buildValidator: BuildValidator = (components, options) => {
    // The shared schemas are added now, so that no request waits for them.
    const compile = compilersOf(components, options)
    const customOptions = { ...options?.customOptions, allErrors: true }
    let compileThorough: typeof compile | null = null
    return (part) => {
      let validate: Validate | null = null
      let findAll: Validate | null = null
      const late = ((value: unknown) => {
        validate ??= compile(part)
        if (validate(value)) return true
        late.errors = validate.errors
        if (!isSmall(value)) return false
        compileThorough ??= compilersOf(components, { ...options, customOptions } as typeof options)
        findAll ??= compileThorough(part)
        if (!findAll(value)) late.errors = findAll.errors
        return false
      }) as Validate
      return late
    }
  }
  const buildSerializer: BuildSerializer = (components, options) => (answer) => {
    let serialize: Serialize | null = null
    // Each answer gets a compiler of its own, because a compiler drops a component after compiling it as an answer.
    return (body) => (serialize ??= SerializerSelector()(components, options)(answer))(body)
  }
  return { compilersFactory: { buildValidator, buildSerializer } }
}
