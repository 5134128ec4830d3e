// The Fastify instance of both HTTP listeners: how it checks requests, writes answers, and answers HEAD and OPTIONS.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type RawServerDefault,
} from 'fastify'
import { ajvOptions, lateCompilers } from './late-compilers.ts'

export type HttpServer = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

interface ServerOptions extends Omit<FastifyHttpOptions<RawServerDefault>, 'ajv'> {
  /** Formats of the server's schemas. They replace Fastify's own formats of the same name. */
  formats?: Record<string, (text: string) => boolean>
}

/** Creates an instance with these options and those of every listener. */
export function createServer({ formats = {}, ...options }: ServerOptions): HttpServer {
  const server: HttpServer = Fastify({
    ...options,
    logger: false,
    // RFC 9110 9.3.2: HEAD is available wherever GET is.
    exposeHeadRoutes: true,
    return503OnClosing: false,
    schemaController: lateCompilers(),
    ajv: {
      customOptions: ajvOptions,
      onCreate: (ajv) => {
        for (const [name, isValid] of Object.entries(formats)) ajv.addFormat(name, isValid)
      },
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
  answerHeadAndOptions(server)
  return server
}

/**
 * Answers OPTIONS with the path's methods, to anyone, for every path added after this call. Also keeps HEAD from reading
 * streams. Fastify answers HEAD with the route of GET, and would read the whole stream for nothing.
 */
function answerHeadAndOptions(server: HttpServer): void {
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
    // Nothing else listens for errors of this stream, and an unhandled one would end the process.
    answer.once('error', () => {}).destroy()
    done(null, Readable.from([]))
  })
}
