// Submission over TLS next to inbound mail of the same size: the CPU of a message until it is accepted, and until all is quiet.
import type { Scope } from '../../tests/support/until.ts'
import { freePort, temporaryFolder } from '../children.ts'
import { type SavedMails, saveMails } from '../load/smtp.ts'
import { type WriteMail, writeMails, writeUnsigned } from '../load/verified-mail.ts'
import { createInbox, startPosthorn } from '../peers/posthorn.ts'
import { measuredOf } from '../peers/posthorn-store.ts'
import { enter, type Plan, runCase, wantsCase } from '../plan.ts'
import { LoadSize } from '../rounds.ts'
import { measure, type Receiver, receivePosthorn, type Shape, setStage, usual, warm } from './inbound.ts'

const shapes: Shape[] = [
  { mail: usual, sessions: 10, connections: 'kept' },
  { mail: usual, sessions: 10, connections: 'per-message' },
]

export async function benchSubmission(scope: Scope, plan: Plan): Promise<void> {
  const wanted = shapes.filter((shape) => wantsCase(plan, titleOf(shape)))
  if (wanted.length === 0) return
  const entrants = [
    await enter('Posthorn, received', async () => receivePosthorn(scope, await setStage(scope))),
    await enter('Posthorn, submitted', () => receiveSubmissions(scope)),
  ]
  for (const entrant of entrants) if ('peer' in entrant) await warm(entrant.peer, plan)
  for (const shape of wanted)
    await runCase(plan, titleOf(shape), entrants, (receiver) => {
      const size = new LoadSize({ first: 200, targetMs: plan.targetMs, max: 40_000 })
      return () => measure(receiver, shape, size)
    })
}

/** A service that delivers nothing, so that the figures have the cost of the acceptance alone. */
async function receiveSubmissions(scope: Scope): Promise<Receiver> {
  const port = await freePort()
  const env = { POSTHORN_SUBMISSIONS: `127.0.0.1:${port}` }
  const posthorn = await startPosthorn(scope, { roles: 'api,mx,webhooks,jobs,dashboard', env })
  await createInbox(posthorn, 'u')
  const mails = saveSubmissions(temporaryFolder(scope, 'submissions'), posthorn.key)
  return {
    ...(await measuredOf(scope, posthorn)),
    port,
    mails: () => mails,
    filed: async () => null,
    settle: async () => {},
  }
}

/** The mails come from the inbox. They have no Message-ID, or a mail of the pool would be sent only once. */
function saveSubmissions(folder: string, password: string): SavedMails {
  const recipients = ['u@far.example']
  const write: WriteMail = (to, number, shape) => {
    const mail = writeUnsigned('bench.test')(to, number, shape)
    const text = mail.bytes.toString('latin1').replace(/^Message-ID:.*\r\n/m, '')
    return { ...mail, bytes: Buffer.from(text.replace('<accounts@', '<u@'), 'latin1') }
  }
  return { ...saveMails(folder, writeMails(write, usual, recipients), recipients), password }
}

function titleOf({ connections }: Shape): string {
  const reuse = connections === 'kept' ? 'connections kept' : 'one message per connection'
  return `submission over TLS and inbound, 5 KB, 10 sessions, ${reuse}`
}
