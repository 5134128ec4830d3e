// The live stream of events, as server-sent events.
import { Readable } from 'node:stream'
import Type from 'typebox'
import type { Api, HttpDeps } from '../api.ts'
import { StreamEvent, streamEventId, streamExample } from '../schemas/announcement.ts'
import { Nothing } from '../schemas/scalars.ts'

const streamType = 'text/event-stream; charset=utf-8'

const Headers = Type.Object({
  'last-event-id': Type.Optional(
    Type.String({
      description: 'The id of the last event received. The stream continues after it.',
      examples: [streamEventId],
    }),
  ),
})

export function eventRoutes(api: Api, { eventStreams }: HttpDeps): void {
  api.get(
    '/v1/events',
    {
      config: {
        scope: ['webhook:manage', 'mailbox:read'],
        refusals: ['limit_reached'],
        otherResponses: {
          200: {
            description: [
              'Events as they happen, each with `id`, `event` (its type) and `data`, one line of JSON that the schema describes:',
              `\`\`\`\n${streamExample}\`\`\``,
            ].join('\n\n'),
            contentType: 'text/event-stream',
            schema: StreamEvent.ref,
          },
        },
      },
      schema: {
        operationId: 'streamEvents',
        tags: ['Webhooks'],
        summary: 'Follow events live',
        description:
          'The same events and bodies as webhooks. A key with only `mailbox:read` gets those of messages and attachments. A key restricted to inboxes gets only theirs. With `last-event-id` the stream continues after that event, for up to seven days. An older or unknown id gets `stream.reset` first.',
        querystring: Nothing,
        headers: Headers,
      },
    },
    async (request, reply) => {
      const { caller, headers } = request
      if (request.method === 'HEAD') return reply.type(streamType).send(Readable.from([]))
      const { cursor, first } = await eventStreams.begin(caller, headers['last-event-id'])
      eventStreams.add(caller, cursor, () => {
        reply.hijack()
        const { raw } = reply
        raw.writeHead(200, {
          ...(reply.getHeaders() as Record<string, string>),
          'content-type': streamType,
          // Proxies that buffer answers would delay events.
          'x-accel-buffering': 'no',
        })
        raw.write(first ?? ':\n\n')
        return raw
      })
    },
  )
}
