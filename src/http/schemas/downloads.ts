// Descriptions of the headers of a download, for the documentation.

export const downloadHeaders = {
  'Cache-Control': '`private, no-store`',
  'Content-Disposition': 'Saves the file under a safe form of its name, in ASCII and in UTF-8.',
  'Content-Length': 'Size in bytes.',
  'Content-Security-Policy': "`default-src 'none'; sandbox`",
  'X-Content-Type-Options': '`nosniff`',
}
