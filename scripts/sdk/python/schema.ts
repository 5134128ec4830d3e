// The parts of JSON Schema and OpenAPI that the document of the API uses.

export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: (string | boolean | null)[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  oneOf?: Schema[]
  anyOf?: Schema[]
  description?: string
}

export interface Parameter {
  $ref?: string
  in: 'path' | 'query' | 'header'
  name: string
  required?: boolean
  schema: Schema
  description?: string
}

type Content = Record<string, { schema: Schema }>

export interface ApiOperation {
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, { content?: Content }>
}

export interface ApiDocument {
  paths: Record<string, Record<string, ApiOperation>>
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter> }
}

/** The last part of a reference. */
export function nameOf(ref: string): string {
  return ref.split('/').at(-1)!
}
