// Haraka's part of the benchmarks: takes every recipient; keeps mail in files, or passes it on: to one sink, or by MX.
const { createWriteStream, rename } = require('node:fs')
const { join } = require('node:path')

exports.register = function () {
  const { folder, onward } = this.config.get('bench.ini').main
  this.register_hook('rcpt', 'take')
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

exports.take = (next) => next(OK)

exports.trust = (next, connection) => {
  connection.relaying = true
  next()
}

exports.relay = function (next) {
  next(OK, { priority: 0, exchange: '127.0.0.1', port: this.relayPort })
}

/** Durable before the 250: written, flushed to disk, renamed into place. */
exports.keep = function (next, connection) {
  const { uuid, message_stream: stream } = connection.transaction
  const partial = join(this.folder, 'partial', uuid)
  const file = createWriteStream(partial, { flush: true })
  const fail = () => next(DENYSOFT)
  file.on('error', fail)
  file.on('close', () => rename(partial, join(this.folder, 'kept', uuid), (error) => (error ? fail() : next(OK))))
  stream.pipe(file)
}
