// A webhook receiver as a separate program: /fast answers at once, /slow after 15 s, GET /count returns the number of calls.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const slowMs = 15_000
const counts = { fast: 0, slow: 0 }

const server = createServer((request, response) => {
  if (request.method === 'GET') return void response.end(JSON.stringify(counts))
  request.resume().on('end', () => {
    const isSlow = request.url === '/slow'
    counts[isSlow ? 'slow' : 'fast']++
    const answer = () => response.writeHead(204).end()
    if (isSlow) setTimeout(answer, slowMs)
    else answer()
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
