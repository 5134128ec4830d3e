// The browser's part of passkeys, whose library is fetched on first use.

/** Returns the device's answer to a challenge, or null if the person cancelled. */
export async function answerWithPasskey(options: object): Promise<object | null> {
  const { startAuthentication } = await import('@simplewebauthn/browser')
  return orNullIfStopped(startAuthentication({ optionsJSON: options as never }))
}

/** Returns a new passkey of this device, or null if the person cancelled. */
export async function makePasskey(options: object): Promise<object | null> {
  const { startRegistration } = await import('@simplewebauthn/browser')
  return orNullIfStopped(startRegistration({ optionsJSON: options as never }))
}

async function orNullIfStopped(answer: Promise<object>): Promise<object | null> {
  try {
    return await answer
  } catch (error) {
    // WebAuthn 5.1.3: the person cancelled or the time ran out. Browsers do not say which.
    if (error instanceof Error && (error.name === 'NotAllowedError' || error.name === 'AbortError'))
      return null
    throw error
  }
}
