// The certificate that a listener shows, by STARTTLS of SMTP or by HTTPS, whether valid or not.
import { once } from 'node:events'
import { connect as connectTls, type PeerCertificate } from 'node:tls'
import { Talk } from '../wire/talk.ts'

export async function showsByHttps(port: number, servername?: string): Promise<PeerCertificate> {
  const socket = connectTls({
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    ...(servername && { servername }),
  })
  socket.on('error', () => {}) // `once` rejects with it
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate()
  } finally {
    socket.destroy()
  }
}

export async function showsBySmtp(port: number): Promise<PeerCertificate> {
  const endings: (() => void | Promise<void>)[] = []
  const talk = await Talk.connect({ after: (end) => void endings.push(end) }, port)
  try {
    await talk.reply()
    await talk.ask('EHLO client.test')
    await talk.ask('STARTTLS')
    return (await talk.secure()).certificate
  } finally {
    talk.destroy()
    for (const end of endings) await end()
  }
}
