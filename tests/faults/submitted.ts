// Programs submit mail by SMTP while the service is killed, and try each mail again until its 250. Each is in the queue once.
import { setTimeout as pause } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import type { Api, Inbox, Message, Submission } from '../support/api.ts'
import { freePort } from '../support/free-port.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import type { Ledger } from './ledger.ts'
import { relayTo, seeded } from './load.ts'

interface Options {
  messages: number
  seed: number
  report: (line: string) => void
}

interface Stage {
  posthorn: Posthorn
  sink: Sink
  api: Api
  inbox: Inbox
  port: number
  secret: string
}

/** One mail. Its program read one 250, with the submission id. */
interface Submitted {
  messageId: string
  recipient: string
  submissionId: string
  tries: number
}

const programs = 4
/** A kill can double a delivery on each connection to the relay. */
const relayConnections = 20
/** A program that gets no answer tries again on another connection. */
const answerMs = 20_000

/** Runs the whole campaign. Everything that it started ends with the scope. */
export async function runSubmitted(scope: Scope, { messages, seed, report }: Options): Promise<Ledger> {
  const random = seeded(seed)
  const stage = await setStage(scope)
  const numbers = Array.from({ length: messages }, (_, number) => number).values()
  const sent: Submitted[] = []
  let isDone = false
  const working = Promise.all(
    Array.from({ length: programs }, async () => {
      for (const number of numbers) sent.push(await submit(stage, number))
    }),
  ).finally(() => {
    isDone = true
  })
  let kills = 0
  while (!isDone) {
    await pause(100 + 1_800 * random())
    if (isDone) break
    await stage.posthorn.kill9()
    kills++
    await stage.posthorn.start()
    report(`kill ${kills}: ${sent.length} of ${messages} accepted`)
  }
  await working
  return await reckon(stage, sent, kills)
}

async function setStage(scope: Scope): Promise<Stage> {
  const sink = await startSink(scope)
  const port = await freePort()
  const posthorn = await startPosthorn(scope, {
    env: {
      ...relayTo(sink),
      POSTHORN_SUBMISSIONS: `127.0.0.1:${port}`,
    },
  })
  const { api, secret } = await createCaller(posthorn)
  return { posthorn, sink, api, inbox: await api.createInbox(), port, secret }
}

/** Sends one mail again and again, as mail programs do, until its 250. */
async function submit({ inbox, port, secret }: Stage, number: number): Promise<Submitted> {
  const [messageId, recipient] = [`<submitted-${number}@program.test>`, `r${number}@far${number % 20}.test`]
  const mail = { from: inbox.address, to: recipient, subject: `Mail ${number}`, text: 'At eight.', messageId }
  let tries = 0
  const response = await until(
    `the 250 of ${messageId}`,
    async () => {
      tries++
      const client = createTransport({
        host: '127.0.0.1',
        port,
        secure: true,
        auth: { user: 'program', pass: secret },
        tls: { rejectUnauthorized: false },
        socketTimeout: answerMs,
      })
      const answer = await client.sendMail(mail).catch((error: Error & { responseCode?: number }) => {
        if ((error.responseCode ?? 0) >= 500) throw error
        return null
      })
      client.close()
      return answer?.response
    },
    { timeoutMs: 120_000, everyMs: 50 },
  )
  return { messageId, recipient, submissionId: response.split(' ').at(-1)!, tries }
}

async function reckon(
  { posthorn, sink, api, inbox }: Stage,
  sent: Submitted[],
  kills: number,
): Promise<Ledger> {
  const isSettled = async () => {
    const page = await api.want<{ submissions: Submission[] }>('/v1/submissions?status=pending&limit=1')
    return page.submissions.length === 0
  }
  await until('every submission to end', isSettled, { timeoutMs: 180_000, everyMs: 250 })
  const stored = Map.groupBy<string, Message>(
    (await api.exported(inbox.id)).filter(({ direction }) => direction === 'outbound'),
    ({ internetMessageId }) => internetMessageId,
  )
  const violations: string[] = []
  let extraCopies = 0
  for (const { messageId, recipient, submissionId } of sent) {
    const count = stored.get(messageId)?.length ?? 0
    if (count !== 1) violations.push(`${messageId} is stored ${count} times`)
    const submission = await api.want<Submission>(`/v1/submissions/${submissionId}`)
    const states = submission.recipients.map(({ email, status }) => `${email} ${status}`).join()
    if (states !== `${recipient} delivered`) violations.push(`${messageId}: ${states}`)
    const copies = sink.copiesOf(messageId).length
    if (copies === 0) violations.push(`nothing of ${messageId} reached ${recipient}`)
    extraCopies += Math.max(0, copies - 1)
  }
  if (stored.size !== sent.length) violations.push(`${stored.size} mails are stored, of ${sent.length} sent`)
  if (extraCopies > kills * relayConnections)
    violations.push(`${extraCopies} extra copies for ${kills} kills`)
  if ((await posthorn.stop()) !== 0) violations.push('SIGTERM at the end did not give exit status 0')
  return {
    figures: [
      ['kills of service', kills],
      ['mails accepted', sent.length],
      ['  sent again after a broken connection', sent.filter(({ tries }) => tries > 1).length],
      ['  stored', stored.size],
      ['  copies at the sink', sink.copies.length],
      ['  extra copies', extraCopies],
    ],
    violations,
  }
}
