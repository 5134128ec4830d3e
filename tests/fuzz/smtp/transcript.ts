// Reads a conversation passively: which bytes got which reply, and which messages the server accepted.

/** The bytes of one connection in both directions. A second phase begins with the TLS handshake. */
export interface Phase {
  sent: Buffer
  received: Buffer
}

export interface Transcript {
  phases: Phase[]
  /** Length of the PROXY protocol header at the start of the first phase. 0 if it is absent or malformed. */
  proxyBytes: number
  /** Whether the client cut or lost the connection. Replies and the end of the sent bytes may then be missing. */
  isCut: boolean
}

export interface TakenMessage {
  /** Content without dot-stuffing. */
  content: Buffer
  /** The accepted RCPT lines, in lower case. */
  recipients: string[]
}

export interface Found {
  taken: TakenMessage[]
  /** Command lines, chunks and messages that got a reply. */
  answered: number
  codes: Map<number, number>
  /** Length of the longest reply line with its CRLF. */
  longestReplyBytes: number
  /** The server's violation of an RFC, or null. */
  fault: string | null
}

// RFC 5321 4.2.3, RFC 1870 6.1, RFC 3207 4, RFC 7504 4: the codes that a server may send without AUTH.
const validCodes = new Set([
  ...[211, 214, 220, 221, 250, 251, 252, 354, 421, 450, 451, 452, 454, 455],
  ...[500, 501, 502, 503, 504, 521, 530, 550, 551, 552, 553, 554, 555, 556],
])
/** After one of these codes the server may have hung up, whatever the client sent. */
const last = new Set([221, 421, 500, 501, 554])
// RFC 5321 4.5.3.1.5: a reply line has up to 512 octets.
const maxReplyBytes = 512

const dataEnd = Buffer.from('\r\n.\r\n')
const lineFeed = 0x0a
const proxyLine = Buffer.from('PROXY ')
const proxySignature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** Reads along, and knows only RFC 5321 and RFC 3030 about the server. */
export function readTranscript({ phases, proxyBytes, isCut }: Transcript): Found {
  const found: Found = { taken: [], answered: 0, codes: new Map(), longestReplyBytes: 0, fault: null }
  for (const [index, phase] of phases.entries()) {
    const reader = new PhaseReader(phase, found, {
      start: index === 0 ? proxyBytes : 0,
      isFirst: index === 0,
      isCut,
    })
    found.fault ??= reader.read()
  }
  return found
}

interface PhaseOptions {
  start: number
  isFirst: boolean
  isCut: boolean
}

class PhaseReader {
  readonly #sent: Buffer
  readonly #received: Buffer
  readonly #found: Found
  readonly #options: PhaseOptions
  #at: number
  #replyAt = 0
  #lastCode = 0
  #recipients: string[] = []
  #chunks: Buffer[] = []

  constructor({ sent, received }: Phase, found: Found, options: PhaseOptions) {
    this.#sent = sent
    this.#received = received
    this.#found = found
    this.#options = options
    this.#at = options.start
  }

  /** Returns the first fault, or null. */
  read(): string | null {
    try {
      if (this.#options.isFirst && this.#reply() === null)
        return this.#mayGoUngreeted() ? null : 'no greeting'
      while (this.#answerNext());
      return null
    } catch (error) {
      if (error instanceof Fault) return error.message
      throw error
    }
  }

  /** No greeting is due to a client that ends at once, or while its bytes may still become a proxy header. */
  #mayGoUngreeted(): boolean {
    return this.#options.isCut || this.#options.start > 0 || this.#sent.length === 0 || this.#mayBeProxy()
  }

  /** The server waits for the rest of the header of a trusted proxy. */
  #mayBeProxy(): boolean {
    if (!this.#options.isFirst || this.#options.start > 0) return false
    return [proxyLine, proxySignature].some((head) => {
      const length = Math.min(head.length, this.#sent.length)
      return this.#sent.subarray(0, length).equals(head.subarray(0, length))
    })
  }

  /** Reads the next command, its data and its reply. Returns false when either is missing. */
  #answerNext(): boolean {
    const end = this.#sent.indexOf(lineFeed, this.#at)
    if (end < 0) return this.#expectNoMore()
    const line = this.#sent.toString('latin1', this.#at, end + 1)
    const chunk = /^bdat +(\d{1,15})( +last)? *\r\n$/i.exec(line)
    if (chunk && line.length <= 512)
      return this.#answerChunk(end + 1, Number(chunk[1]), chunk[2] !== undefined)
    const code = this.#answer(line)
    if (code === null) return false
    this.#at = end + 1
    if (code === 354) return this.#answerMessage()
    this.#note(line.toLowerCase(), code)
    // After this comes the handshake, or another phase.
    return !(code === 220 && /^starttls/i.test(line))
  }

  #note(line: string, code: number): void {
    if (code >= 300) return
    if (/^(?:mail|rset|ehlo|helo)\b/.test(line)) {
      this.#recipients = []
      this.#chunks = []
    } else if (/^rcpt\b/.test(line)) this.#recipients.push(line)
  }

  #answerMessage(): boolean {
    // RFC 5321 4.1.1.4: the CRLF that ends the DATA command also begins an empty message's final dot.
    const end = this.#sent.indexOf(dataEnd, this.#at - 2)
    if (end < 0) return this.#expectNoMore()
    const stuffed = this.#sent.subarray(this.#at, Math.max(end + 2, this.#at))
    const code = this.#answer('a message')
    if (code === null) return false
    this.#at = end + dataEnd.length
    if (code < 300) this.#take(Buffer.from(stuffed.toString('latin1').replace(/(^|\r\n)\./g, '$1'), 'latin1'))
    this.#endTransaction()
    return true
  }

  #answerChunk(start: number, sizeBytes: number, isLast: boolean): boolean {
    const end = start + sizeBytes
    if (end > this.#sent.length) return this.#expectNoMore()
    const code = this.#answer('a chunk')
    if (code === null) return false
    this.#at = end
    // RFC 3030 2: a chunk that is refused is no part of any message.
    if (code < 300) this.#chunks.push(this.#sent.subarray(start, end))
    if (isLast && code < 300) this.#take(Buffer.concat(this.#chunks))
    if (isLast && code !== 503) this.#endTransaction()
    return true
  }

  #take(content: Buffer): void {
    if (this.#recipients.length === 0) throw new Fault('a message was taken for nobody')
    this.#found.taken.push({ content, recipients: this.#recipients })
  }

  #endTransaction(): void {
    this.#recipients = []
    this.#chunks = []
  }

  #answer(what: string): number | null {
    const code = this.#reply()
    if (code !== null) this.#found.answered++
    else if (!this.#options.isCut && !last.has(this.#lastCode) && !this.#mayBeProxy())
      throw new Fault(`no reply to ${JSON.stringify(what.slice(0, 100))}`)
    return code
  }

  /** The client sent nothing complete any more, so only a final reply may follow. */
  #expectNoMore(): boolean {
    const code = this.#reply()
    if (code !== null && !last.has(code)) throw new Fault(`a reply of ${code} to nothing`)
    if (code !== null && this.#reply() !== null) throw new Fault('a reply after the last one')
    return false
  }

  /** Returns the code of the next reply, or null. */
  #reply(): number | null {
    let code: string | null = null
    for (;;) {
      const line = this.#replyLine()
      if (line === null) {
        if (code !== null && !this.#options.isCut) throw new Fault('a reply without its end')
        return null
      }
      if (code !== null && code !== line.slice(0, 3)) throw new Fault('two codes in one reply')
      code = line.slice(0, 3)
      if (line[3] === ' ') break
    }
    this.#lastCode = Number(code)
    this.#found.codes.set(this.#lastCode, (this.#found.codes.get(this.#lastCode) ?? 0) + 1)
    return this.#lastCode
  }

  #replyLine(): string | null {
    const end = this.#received.indexOf(lineFeed, this.#replyAt)
    if (end < 0) {
      if (this.#replyAt < this.#received.length && !this.#options.isCut)
        throw new Fault('a reply line without its end')
      return null
    }
    const line = this.#received.toString('latin1', this.#replyAt, end + 1)
    this.#replyAt = end + 1
    this.#found.longestReplyBytes = Math.max(this.#found.longestReplyBytes, line.length)
    if (!/^[2-5]\d\d[ -][\x20-\x7e]*\r\n$/.test(line))
      throw new Fault(`no reply line: ${JSON.stringify(line)}`)
    if (!validCodes.has(Number(line.slice(0, 3)))) throw new Fault(`no code of SMTP: ${line.trimEnd()}`)
    if (line.length > maxReplyBytes) throw new Fault(`a reply line of ${line.length} bytes`)
    return line
  }
}

class Fault extends Error {}
