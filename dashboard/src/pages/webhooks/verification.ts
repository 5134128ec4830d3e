// Programs that verify a call, in three languages, each ready to run.
export const verification: Record<string, string> = {
  TypeScript: `// npm install standardwebhooks
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET!)

createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    const body = Buffer.concat(chunks).toString()
    const event = webhook.verify(body, request.headers as Record<string, string>)
    response.writeHead(204).end()
    console.log(event)
  } catch {
    response.writeHead(400).end('the signature does not fit')
  }
}).listen(3000)`,
  Python: `# pip install standardwebhooks
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from standardwebhooks import Webhook

webhook = Webhook(os.environ["WEBHOOK_SECRET"])

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            print(webhook.verify(body, headers))
            self.send_response(204)
        except Exception:
            self.send_response(400)
        self.end_headers()

HTTPServer(("127.0.0.1", 3000), Receiver).serve_forever()`,
  curl: `# Signs a test call to your own program as Posthorn does, so that you can try its check.
BODY='{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{}}'
ID=try-1 AT=$(date +%s)
KEY=$(printf %s "\${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$AT.$BODY" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary | base64)
curl -i http://127.0.0.1:3000 -H 'content-type: application/json' \\
  -H "webhook-id: $ID" -H "webhook-timestamp: $AT" -H "webhook-signature: v1,$SIGNATURE" -d "$BODY"`,
}
