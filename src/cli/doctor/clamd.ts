// The doctor's check of clamd: whether it answers, and whether it reports content that it did not scan.
import type { Settings } from '../../config/settings.ts'
import { builtInWords } from '../../scan/built-in.ts'
import { Clamd } from '../../scan/clamd.ts'
import { encryptedSample, nestedSample } from '../../scan/samples.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'

const name = 'clamd'
const answerMs = 10_000

export async function checkClamd({ clamd: address, isDevelopment }: Settings): Promise<Check> {
  if (!address && isDevelopment) return skipped(name, `POSTHORN_CLAMD is unset: ${builtInWords}`)
  if (!address) return skipped(name, 'POSTHORN_CLAMD is unset: attachments stay unscanned')
  const clamd = new Clamd(address, { answerMs })
  try {
    const version = await clamd.version()
    const samples = [encryptedSample, nestedSample]
    const [encrypted, nested] = await Promise.all(samples.map((sample) => clamd.scan(() => [sample])))
    const silent = [
      ...(encrypted!.state === 'clean' ? ['AlertEncrypted yes'] : []),
      ...(nested!.state === 'clean' ? ['AlertExceedsMax yes'] : []),
    ]
    if (silent.length === 0) return ok(name, `${version} answers`)
    return warning(
      name,
      `${version} reports archives as clean that it did not scan`,
      `add ${silent.join(' and ')} to clamd.conf`,
    )
  } catch (error) {
    const mend = 'check that clamd runs, that POSTHORN_CLAMD is right, and that this user may open the socket'
    return failed(name, `check failed: ${(error as Error).message}`, mend)
  }
}
