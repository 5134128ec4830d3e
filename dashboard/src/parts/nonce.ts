// Passes the page's nonce to the library that writes a style element while a dialog is open.

/** The library reads the nonce from the name that bundlers use. */
export function passNonceOn(): void {
  const { nonce } = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]') ?? {}
  if (nonce) Object.assign(globalThis, { __webpack_nonce__: nonce })
}
