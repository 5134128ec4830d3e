// Descriptions of the headers of a download, for the documentation.

export const downloadHeaders = {
  'Cache-Control': '`private, no-store`',
  'Content-Disposition': 'Saves it under a harmless form of its name, in ASCII and in UTF-8.',
  'Content-Length': 'How many bytes it has.',
  'Content-Security-Policy': "`default-src 'none'; sandbox`",
  'X-Content-Type-Options': '`nosniff`',
}
