// Fastify's compilers of schemas, put off: what checks a request or writes an answer is compiled at its first use. Compiling
// all of it at the start took four fifths of the start's processor time.
import AjvCompiler from '@fastify/ajv-compiler'
import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { FastifyServerOptions } from 'fastify'

type BuildValidator = ReturnType<typeof AjvCompiler>
type BuildSerializer = ReturnType<typeof SerializerSelector>
type Validate = ReturnType<ReturnType<BuildValidator>>
type Serialize = ReturnType<ReturnType<BuildSerializer>>

/** For one server's option `schemaController`. A schema that cannot be compiled fails the requests that need it. */
export function lateCompilers(): NonNullable<FastifyServerOptions['schemaController']> {
  const compilersOf = AjvCompiler()
  const buildValidator: BuildValidator = (components, options) => {
    // What routes share is compiled now: no request waits for it.
    const compile = compilersOf(components, options)
    return (part) => {
      let validate: Validate | null = null
      const late = ((value: unknown) => {
        validate ??= compile(part)
        const isValid = validate(value)
        late.errors = validate.errors
        return isValid
      }) as Validate
      return late
    }
  }
  const buildSerializer: BuildSerializer = (components, options) => (answer) => {
    let serialize: Serialize | null = null
    // A compiler for each: one forgets a component once it has compiled an answer that is that component.
    return (body) => (serialize ??= SerializerSelector()(components, options)(answer))(body)
  }
  return { compilersFactory: { buildValidator, buildSerializer } }
}
