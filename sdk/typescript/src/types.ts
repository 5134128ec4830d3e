// The types of requests and answers, by the operation that they belong to.
import type { components, operations } from './api.gen.ts'
import type { GivenAttachment } from './attachments.ts'

type Schemas = components['schemas']
type Id = keyof operations

export type Message = Schemas['Message']
export type StreamEvent = Schemas['StreamEvent'] & { id: string | null }
export type WebhookEvent = Schemas['WebhookEvent'] & { id: string }

type Json<Part> = Part extends { content: { 'application/json': infer Body } } ? Body : never

/** `Omit` that keeps the branches of a union. */
export type Without<Body, Name extends string> = Body extends unknown ? Omit<Body, Name> : never

/** Attachments may have any source of bytes as their content. */
type WithContent<Body> = Body extends { attachments?: Schemas['GivenAttachment'][] }
  ? Omit<Body, 'attachments'> & { attachments?: GivenAttachment[] }
  : Body

/** The body of a request. */
export type Body<Name extends Id> = WithContent<Json<NonNullable<operations[Name]['requestBody']>>>

/** The query of a request. */
export type Query<Name extends Id> = NonNullable<operations[Name]['parameters']['query']>

/** The JSON of a success. */
export type Answer<Name extends Id> = {
  [Status in keyof operations[Name]['responses']]: Status extends 200 | 201 | 202
    ? Json<operations[Name]['responses'][Status]>
    : never
}[keyof operations[Name]['responses']]
