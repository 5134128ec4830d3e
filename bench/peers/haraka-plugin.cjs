// Haraka's plugin for the benchmarks: accepts every recipient, and stores mail in files or relays it to one sink or by MX.
const { createWriteStream, rename } = require('node:fs')
const { join } = require('node:path')

exports.register = function () {
  const { folder, onward, plain } = this.config.get('bench.ini').main
  this.register_hook('rcpt', 'take')
  this.plainHost = plain
  // After the plugin tls, which offers STARTTLS at each address.
  if (plain) this.register_hook('capabilities', 'hideTls', 100)
  if (onward) {
    this.register_hook('connect', 'trust')
    if (onward === 'mx') return
    this.register_hook('get_mx', 'relay')
    this.relayPort = Number(onward)
  } else {
    this.register_hook('queue', 'keep')
    this.folder = folder
  }
}

exports.hideTls = function (next, connection) {
  if (connection.local.ip === this.plainHost)
    connection.capabilities = connection.capabilities.filter((name) => name !== 'STARTTLS')
  next()
}

exports.take = (next) => next(OK)

exports.trust = (next, connection) => {
  connection.relaying = true
  next()
}

exports.relay = function (next) {
  next(OK, { priority: 0, exchange: '127.0.0.1', port: this.relayPort })
}

/** Makes a mail durable before the 250: writes, flushes to disk, renames. */
exports.keep = function (next, connection) {
  const { uuid, message_stream: stream } = connection.transaction
  const partial = join(this.folder, 'partial', uuid)
  const file = createWriteStream(partial, { flush: true })
  const fail = () => next(DENYSOFT)
  file.on('error', fail)
  file.on('close', () => rename(partial, join(this.folder, 'kept', uuid), (error) => (error ? fail() : next(OK))))
  stream.pipe(file)
}
