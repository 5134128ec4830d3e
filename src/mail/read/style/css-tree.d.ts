// Types of the two css-tree modules used here, because its types on npm cover only the main module.
declare module 'css-tree/tokenizer' {
  export function tokenize(source: string, onToken: (type: number, start: number, end: number) => void): void
  export const tokenTypes: Record<
    | 'Ident'
    | 'Function'
    | 'AtKeyword'
    | 'Hash'
    | 'String'
    | 'BadString'
    | 'Url'
    | 'BadUrl'
    | 'Delim'
    | 'WhiteSpace'
    | 'CDO'
    | 'CDC'
    | 'Colon'
    | 'Semicolon'
    | 'Comma'
    | 'LeftSquareBracket'
    | 'RightSquareBracket'
    | 'LeftParenthesis'
    | 'RightParenthesis'
    | 'LeftCurlyBracket'
    | 'RightCurlyBracket'
    | 'Comment',
    number
  >
}
declare module 'css-tree/utils' {
  export const ident: { decode(text: string): string }
  export const string: { decode(text: string): string }
}
