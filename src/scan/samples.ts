// Harmless archives that a scanner must not pass, to test whether clamd reports content that it did not examine.
import { crc32 } from 'node:zlib'

const encryptedFlag = 1

/** A ZIP archive with a file that is marked as encrypted. */
export const encryptedSample = zip(Buffer.from('thirteen byte'), encryptedFlag)

/** Nested ZIP archives, deeper than MaxRecursion is ever set. */
export const nestedSample = nest(110)

function nest(depth: number): Buffer {
  let content: Buffer = Buffer.from('x')
  for (let level = 0; level < depth; level++) content = zip(content, 0)
  return content
}

/** An archive of one file, stored uncompressed. */
function zip(content: Buffer, flags: number): Buffer {
  const name = Buffer.from('a.zip')
  const about = Buffer.alloc(26)
  about.writeUInt16LE(20, 0)
  about.writeUInt16LE(flags, 2)
  about.writeUInt32LE(crc32(content), 10)
  about.writeUInt32LE(content.length, 14)
  about.writeUInt32LE(content.length, 18)
  about.writeUInt16LE(name.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), about, name, content])
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\0', 'latin1'), about, Buffer.alloc(14), name])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(local.length, 16)
  return Buffer.concat([local, central, end])
}
