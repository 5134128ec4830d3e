// The form in which a browser shows a mail's HTML. Only the threads load the library that makes it (`safe-html.ts`).

export interface SafeHtml {
  html: string
  /** Number of pictures on other servers. Their addresses are in `data-remote-src`. */
  remoteImages: number
  /** The HTML exceeded 256 KiB, so only its beginning is shown. */
  isCut: boolean
}

/** Nested elements take quadratic time. This many characters are read within one or two seconds. */
export const maxSafeHtml = 1 << 18
