// Makes blocking code of code for asyncio, by replacing words.

const replacements: readonly (readonly [RegExp, string])[] = [
  [/\basync (def|for|with)\b/g, '$1'],
  [/\bawait /g, ''],
  [/\bAwaitable\[(\w+)\]/g, '$1'],
  [/\bAwaitable, /g, ''],
  [/\bAsyncGenerator\[(\w+), None\]/g, 'Generator[$1, None, None]'],
  [/\bAsync(?=[A-Z])/g, ''],
  [/\b__a(iter|next|enter|exit)__/g, '__$1__'],
  [/\baclosing\b/g, 'closing'],
  [/\basynchronous\b/g, 'blocking'],
  [
    /The client for asyncio, from which that for blocking code is generated\./g,
    'The client for blocking code.',
  ],
  [/^("""(?:[^"]|"(?!""))*""")\n/, '$1\n# Generated from the client for asyncio.\n'],
]

export function makeBlocking(text: string): string {
  return replacements.reduce((changed, [word, other]) => changed.replace(word, other), text)
}
