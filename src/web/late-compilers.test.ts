// From the first request on, requests are validated and answers serialized as by Fastify's own compilers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { lateCompilers } from './late-compilers.ts'

const components = [
  { $id: 'Name', type: 'string', maxLength: 5 },
  { $id: 'Person', type: 'object', properties: { name: { $ref: 'Name#' }, at: { type: 'string' } } },
]
const named = {
  body: { type: 'object', required: ['name'], properties: { name: { $ref: 'Name#' } } },
  // An answer that is a component, and an answer that refers to it.
  response: { 200: { $ref: 'Person#' }, 202: { type: 'array', items: { $ref: 'Person#' } } },
}

function createServers(): { late: FastifyInstance; own: FastifyInstance } {
  const [late, own] = [Fastify({ schemaController: lateCompilers() }), Fastify()]
  for (const server of [late, own]) {
    for (const component of components) server.addSchema(component)
    server.post('/one', { schema: named }, async () => ({ name: 'Ada', at: new Date(0), secret: 'x' }))
    server.post('/many', { schema: named }, async (_request, reply) => {
      reply.code(202)
      return [{ name: 'Ada', secret: 'x' }]
    })
  }
  return { late, own }
}

test('late compilers accept and refuse the same requests as Fastify’s own, each time', async () => {
  const { late, own } = createServers()
  const requests = ['/one', '/many', '/one', '/many'].flatMap((url) =>
    [{ name: 'Ada' }, { name: 'Adamantine' }, {}, { name: 'Ada' }].map((payload) => ({ url, payload })),
  )
  for (const request of requests) {
    const [ours, theirs] = [await ask(late, request), await ask(own, request)]
    assert.deepEqual(ours, theirs, JSON.stringify(request))
    assert.doesNotMatch(ours.body, /secret/)
  }
})

async function ask(server: FastifyInstance, request: { url: string; payload: object }) {
  const { statusCode, body } = await server.inject({ method: 'POST', ...request })
  return { statusCode, body }
}

test('a schema that cannot be compiled fails only the requests that need it', async () => {
  const { late } = createServers()
  late.get('/broken', { schema: { response: { 200: { $ref: 'Nobody#' } } } }, async () => ({}))
  assert.equal((await late.inject({ url: '/broken' })).statusCode, 500)
  assert.equal((await late.inject({ method: 'POST', url: '/one', payload: { name: 'Ada' } })).statusCode, 200)
})
