// Questions and answers between the supervisor and a worker. Those of one turn of the event loop go in one message.

/** The calls that one side answers, by name. Their inputs and results are cloned, as `structuredClone` does. */
type CallsOf<Calls> = { [Name in keyof Calls]: (...input: never[]) => unknown }
type Input<Call> = Call extends (...input: infer Values) => unknown ? Values : never
type Result<Call> = Call extends (...input: never[]) => infer Value ? Awaited<Value> : never

export type Frame =
  /** No answer is expected if `id` is null. */
  | { ask: string; input: unknown[]; id: number | null }
  | { answered: number; value: unknown }
  | { failed: number; reason: string }

type Answer = (...input: unknown[]) => unknown

/** One side of the channel: asks `Asked`, and answers `Answered`. Calls arrive in the order in which they were made. */
export class Channel<Asked extends CallsOf<Asked>, Answered extends CallsOf<Answered>> {
  readonly #send: (frames: Frame[]) => void
  readonly #answers: Answered
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>()
  #waiting: Frame[] = []
  #lastId = 0
  #isClosed = false

  constructor(send: (frames: Frame[]) => void, answers: Answered) {
    this.#send = send
    this.#answers = answers
  }

  /** Rejects if the other side fails or ends. */
  ask<Name extends keyof Asked & string>(
    name: Name,
    ...input: Input<Asked[Name]>
  ): Promise<Result<Asked[Name]>> {
    const question = Promise.withResolvers<unknown>()
    if (this.#isClosed) question.reject(ended())
    else {
      const id = ++this.#lastId
      this.#open.set(id, question)
      this.#push({ ask: name, input, id })
    }
    return question.promise as Promise<Result<Asked[Name]>>
  }

  /** Asks for something that has no result. */
  post<Name extends keyof Asked & string>(name: Name, ...input: Input<Asked[Name]>): void {
    this.#push({ ask: name, input, id: null })
  }

  receive(frames: readonly Frame[]): void {
    for (const frame of frames) {
      if ('ask' in frame) void this.#answer(frame)
      else if ('answered' in frame) this.#settle(frame.answered)?.resolve(frame.value)
      else this.#settle(frame.failed)?.reject(new Error(frame.reason))
    }
  }

  /** The other side has ended. */
  close(): void {
    this.#isClosed = true
    this.#waiting = []
    for (const question of this.#open.values()) question.reject(ended())
    this.#open.clear()
  }

  async #answer({ ask, input, id }: Extract<Frame, { ask: string }>): Promise<void> {
    const answer = (this.#answers as unknown as Record<string, Answer>)[ask]!
    if (id === null) return void answer(...input)
    try {
      this.#push({ answered: id, value: await answer(...input) })
    } catch (error) {
      this.#push({ failed: id, reason: (error as Error).message })
    }
  }

  #settle(id: number): PromiseWithResolvers<unknown> | undefined {
    const question = this.#open.get(id)
    this.#open.delete(id)
    return question
  }

  #push(frame: Frame): void {
    if (this.#isClosed) return
    if (this.#waiting.push(frame) > 1) return
    setImmediate(() => {
      const frames = this.#waiting
      this.#waiting = []
      if (frames.length > 0) this.#send(frames)
    })
  }
}

function ended(): Error {
  return new Error('the other process has ended')
}
