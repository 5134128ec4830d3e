// The client by which the desk's pages call its operations.
import { connect, type Under } from '../api/client.ts'
import type { paths } from '../api/desk.gen.ts'

type Paths = Under<'/desk/v1', paths>

export const api = connect<Paths>('/desk/v1')

/** The body of the answer to GET at this path. */
export type Answer<Path extends keyof Paths> = Paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': infer Body } } } }
}
  ? Body
  : never
export type Organization = Answer<'/organizations/{organizationId}'>
export type Queue = Answer<'/queues/{queue}'>
