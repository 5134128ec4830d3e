// Methods, for both HTTP listeners: HEAD and OPTIONS of every resource, and which methods change something.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyTypeProvider, RawServerDefault } from 'fastify'

type Server<Types extends FastifyTypeProvider> = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  Types
>

/**
 * Answers OPTIONS of every path that is added after it, with the path's methods, to anyone. HEAD reads no stream: Fastify
 * itself answers HEAD with the route of GET, and would read the whole stream for nothing.
 */
export function answerHeadAndOptions<Types extends FastifyTypeProvider>(server: Server<Types>): void {
  const methodsOf = new Map<string, Set<string>>()
  server.addHook('onRoute', ({ url, method }) => {
    const known = methodsOf.get(url)
    const methods = known ?? new Set<string>()
    for (const one of [method].flat()) methods.add(one)
    if (known) return
    methodsOf.set(url, methods)
    // RFC 9110 10.2.1: Allow lists the methods of the resource.
    server.options(url, { schema: { hide: true } }, async (_request, reply) =>
      reply
        .code(204)
        .header('allow', [...methods].join(', '))
        .send(),
    )
  })
  server.addHook('onSend', (request, _reply, answer, done) => {
    // RFC 9110 9.3.2: an answer to HEAD has no content.
    if (request.method !== 'HEAD' || !(answer instanceof Readable)) return done()
    answer.destroy()
    done(null, Readable.from([]))
  })
}

// RFC 9110 9.2.1: these are safe.
export function isChange({ method }: { method: string }): boolean {
  return method !== 'GET' && method !== 'HEAD'
}
