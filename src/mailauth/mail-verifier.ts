// Verifies a mail's DKIM signatures and ARC chain as it arrives: asks for keys after the header, and streams the body.
import { ArcValidation, type ArcVerdict } from './arc/validate-arc.ts'
import { type BodyCanonicalization, BodyDigest } from './dkim/body-digest.ts'
import type { SignatureTags } from './dkim/signature.ts'
import { SignerKeys } from './dkim/signer-keys.ts'
import { DkimSignatures, type DkimVerdict, unverified } from './dkim/verify-dkim.ts'
import { readFields } from './header-fields.ts'
import type { Lookup } from './lookup.ts'

export interface MailVerdicts {
  /** One per signature, in the order of the fields. Empty for unsigned mail. */
  dkim: DkimVerdict[]
  arc: ArcVerdict
}

const headerTooLarge = 'the header has more than 256 KiB or 1,000 fields: not verified'

/**
 * Call `header` once, then `body` for each piece, then `end`. Asks for at most 28 names: 8 for DKIM, 20 for ARC. The
 * body is made canonical and hashed once for each canonicalization in use, at most twice, however many signatures there
 * are. Never throws on malformed mail. If `lookup` has a deadline, `end` keeps it.
 *
 * Measured for 5 KB, processor time: 90 µs with an RSA-2048 signature, 190 with an Ed25519 one, 20 without any. The
 * worst cases, 8 signatures over 1 MiB of header or 50 ARC sets of 256 KiB, take 40 to 70 ms.
 */
export class MailVerifier {
  readonly #lookup: Lookup
  readonly #nowSeconds: number
  readonly #digests = new Map<BodyCanonicalization, BodyDigest>()
  #dkim: DkimSignatures | null = null
  #arc: ArcValidation | null = null

  constructor(lookup: Lookup, { nowSeconds }: { nowSeconds: number }) {
    this.#lookup = lookup
    this.#nowSeconds = nowSeconds
  }

  /** The complete header block, with or without the empty line at its end. */
  header(block: Buffer): void {
    const fields = readFields(block)
    if (fields === null) return
    const keys = new SignerKeys(this.#lookup)
    this.#dkim = new DkimSignatures(fields, keys, this.#nowSeconds)
    this.#arc = new ArcValidation(fields, keys, this.#nowSeconds)
    const wanted = [...this.#dkim.wanted, ...this.#arc.wanted]
    for (const form of ['simple', 'relaxed'] as const) {
      const lengths = wanted.filter((one) => one.bodyCanonicalization === form).map((one) => one.bodyLength)
      if (lengths.length > 0) this.#digests.set(form, new BodyDigest(form, lengths))
    }
  }

  /** The next bytes of the body, which begins after the empty line. */
  body(chunk: Buffer): void {
    for (const digest of this.#digests.values()) digest.update(chunk)
  }

  /** Waits for the keys. Must be called once. */
  async end(): Promise<MailVerdicts> {
    if (this.#dkim === null || this.#arc === null) return tooLarge
    for (const digest of this.#digests.values()) digest.end()
    const hashOf = ({ bodyCanonicalization, bodyLength }: SignatureTags) =>
      this.#digests.get(bodyCanonicalization)!.hashOf(bodyLength)
    const [dkim, arc] = await Promise.all([this.#dkim.verdicts(hashOf), this.#arc.verdict(hashOf)])
    return { dkim, arc }
  }
}

const tooLarge: MailVerdicts = {
  dkim: [{ ...unverified, result: 'policy', reason: headerTooLarge }],
  arc: {
    result: 'fail',
    reason: headerTooLarge,
    sealers: [],
    authResults: [],
    coversFrom: false,
    coversBody: false,
    oldestPass: null,
    asked: [],
  },
}
