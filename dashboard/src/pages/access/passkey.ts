// What the browser does with passkeys; its library is fetched when somebody wants one.

/** The device's answer to a challenge, or null where the person has stopped it. */
export async function answerWithPasskey(options: object): Promise<object | null> {
  const { startAuthentication } = await import('@simplewebauthn/browser')
  return orNullIfStopped(startAuthentication({ optionsJSON: options as never }))
}

/** A new passkey of this device, or null where the person has stopped it. */
export async function makePasskey(options: object): Promise<object | null> {
  const { startRegistration } = await import('@simplewebauthn/browser')
  return orNullIfStopped(startRegistration({ optionsJSON: options as never }))
}

async function orNullIfStopped(answer: Promise<object>): Promise<object | null> {
  try {
    return await answer
  } catch (error) {
    // WebAuthn 5.1.3: the person said no, or time ran out; browsers do not say which.
    if (error instanceof Error && (error.name === 'NotAllowedError' || error.name === 'AbortError'))
      return null
    throw error
  }
}
