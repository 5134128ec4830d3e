// Makes the name that a stranger gave a file harmless, for saving it as a download.

const maxBytes = 200
/** An extension is kept when a name is cut. A longer one does not count as an extension. */
const maxExtension = 16

/** A Content-Disposition that makes browsers save the file, never show it, under a harmless form of `filename`. */
export function attachmentDisposition(filename: string): string {
  const name = harmlessName(filename)
  // RFC 6266 D: no percent signs and no backslashes in the plain form, because some programs decode them.
  const plain = name.replace(/[^\x20-\x7e]|[%"\\]/gu, '_')
  return `attachment; filename="${plain}"; filename*=UTF-8''${extendedValue(name)}`
}

// RFC 8187 3.2.1: an attr-char stays as it is. Every other character becomes percent-encoded UTF-8.
function extendedValue(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** The name without folders, controls, marks that reverse the text, and characters that have a meaning in file systems. */
function harmlessName(filename: string): string {
  // RFC 6266 4.3: keeps only the last segment of a path, so that no file is written outside the chosen folder.
  const last = filename.toWellFormed().split(/[/\\]/).at(-1)!
  const visible = last
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    .trim()
  // Leading dots hide a file or climb out of a folder. Windows drops trailing dots and spaces, and the rest is the name.
  const bare = visible.replace(/^\.+/, '').replace(/[. ]+$/, '')
  // Windows opens a device under these names, whatever the extension.
  const safe = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i.test(bare) ? `_${bare}` : bare
  return cut(safe) || 'attachment'
}

function cut(name: string): string {
  if (Buffer.byteLength(name) <= maxBytes) return name
  const dot = name.lastIndexOf('.')
  const extension = dot > 0 && name.length - dot <= maxExtension ? name.slice(dot) : ''
  let room = maxBytes - Buffer.byteLength(extension)
  let stem = ''
  for (const character of name.slice(0, name.length - extension.length)) {
    room -= Buffer.byteLength(character)
    if (room < 0) break
    stem += character
  }
  return stem + extension
}
