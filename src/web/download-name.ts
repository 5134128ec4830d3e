// The name under which a download is saved: what a stranger called a file, made harmless.

const maxBytes = 200
/** Extensions are kept when a name is cut; what is longer is none. */
const maxExtension = 16

/** A Content-Disposition that saves, never shows, under a harmless form of `filename`. */
export function attachmentDisposition(filename: string): string {
  const name = harmlessName(filename)
  // RFC 6266 D: no percent signs and no backslashes in the plain form, which some programs decode.
  const plain = name.replace(/[^\x20-\x7e]|[%"\\]/gu, '_')
  return `attachment; filename="${plain}"; filename*=UTF-8''${extendedValue(name)}`
}

// RFC 8187 3.2.1: an attr-char stands for itself, all else is percent-encoded UTF-8.
function extendedValue(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** One name without folders, controls, marks that turn the text around, and what file systems give a meaning to. */
function harmlessName(filename: string): string {
  // RFC 6266 4.3: only the last segment of a path counts, so that nothing is written outside the chosen folder.
  const last = filename.toWellFormed().split(/[/\\]/).at(-1)!
  const visible = last
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    .trim()
  // Leading dots hide a file or climb out of a folder; Windows drops those at the end, and what stands before counts.
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
