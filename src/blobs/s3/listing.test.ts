// Listings of S3 in several pages, of a small server that gives 1,000 names a page.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { listObjects, listUploads } from './listing.ts'
import { S3Client } from './s3-client.ts'

const pageEntries = 1_000
const names = Array.from({ length: 2_500 }, (_, index) => `shop/ab/${String(index).padStart(6, '0')}&`)

function listingOf({ searchParams }: URL): string {
  const wanted = searchParams.get('prefix')!
  const isUploads = searchParams.has('uploads')
  // The tokens of a store may be any text.
  const marker = searchParams.get(isUploads ? 'upload-id-marker' : 'continuation-token')
  const start = marker === null ? 0 : Number(/^at <(\d+)>$/.exec(marker)![1])
  const found = names.filter((name) => name.startsWith(wanted))
  const entries = found.slice(start, start + pageEntries).map((name) => {
    const key = `<Key>${name.replace('&', '&amp;')}</Key>`
    return isUploads
      ? `<Upload>${key}<UploadId>u</UploadId><Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload>`
      : `<Contents>${key}</Contents>`
  })
  const next = `at &lt;${start + pageEntries}&gt;`
  const isTruncated = start + pageEntries < found.length
  const markers = isUploads
    ? `<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>${next}</NextUploadIdMarker>`
    : `<NextContinuationToken>${next}</NextContinuationToken>`
  return `<Listing>${entries.join('')}<IsTruncated>${isTruncated}</IsTruncated>${isTruncated ? markers : ''}</Listing>`
}

const server = createServer(({ url }, answer) => answer.end(listingOf(new URL(url!, 'http://s3')))).listen(
  0,
  '127.0.0.1',
)
await new Promise((resolve) => server.once('listening', resolve))
after(() => {
  server.closeAllConnections()
  server.close()
})
const client = new S3Client({
  address: {
    bucket: 'mail',
    prefix: 'shop/',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'us-east-1',
    isPathStyle: true,
  },
  credentials: {
    current: async () => ({ accessKeyId: 'a', secretAccessKey: 'b', sessionToken: undefined }),
    forget: () => {},
  },
})
const keys = names.map((name) => name.split('/').at(-1)!)

test('2,500 objects are listed over three pages, each once', async () => {
  assert.deepEqual(
    (await listObjects(client, 'ab/')).map(({ key }) => key),
    keys,
  )
  assert.deepEqual(await listObjects(client, 'cd/'), [])
})

test('2,500 uploads are listed over three pages, each once', async () => {
  const uploads = await listUploads(client, 'ab/')
  assert.deepEqual(
    uploads.map(({ key }) => key),
    keys,
  )
  assert.deepEqual([uploads[0]!.name, uploads[0]!.initiatedAtMs], ['000000&.u', Date.UTC(2026, 0)])
})
