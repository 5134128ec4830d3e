// The capture server's backend: stores mail for the outside world, so that nothing leaves a development deployment.
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { reply } from '../../smtp/reply.ts'
import type { Backend, Envelope, Incoming } from '../../smtp/server/backend.ts'
import { type CapturedMail, insertCaptured } from '../../store/mailbox/captured.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { MessageSink } from '../message-sink.ts'

/** The number of captured mails to keep. Older ones are deleted. */
const keep = 1_000

/** Accepts every recipient and keeps the newest mails. */
export class Capture implements Backend {
  readonly #batch: Batch<CapturedMail, null>
  readonly #blobs: Blobs

  constructor({ db, clock, blobs }: { db: Db; clock: Clock; blobs: Blobs }) {
    this.#blobs = blobs
    this.#batch = new Batch({
      name: 'capture',
      sizeOf: ({ raw }) => raw.bytes?.length ?? 0,
      maxInFlight: 1,
      flush: async (mails) => {
        const unused = await db.transaction((tx) => insertCaptured(tx, mails, keep, clock.now()))
        await deleteBlobs({ db, blobs }, unused)
        return mails.map(() => null)
      },
    })
  }

  recipient(): null {
    return null
  }

  message({ from, to }: Envelope): Incoming {
    const sink = new MessageSink(this.#blobs)
    return {
      write: (chunk) => sink.write(chunk),
      abort: () => sink.abort(),
      end: async () => {
        const { raw } = await sink.end()
        const recipients = to.map(({ address }) => address)
        await this.#batch.add({ id: raw.id, sender: from.address, recipients, raw })
        return reply(250, '2.0.0', `Ok: captured as ${raw.id}`)
      },
    }
  }
}
