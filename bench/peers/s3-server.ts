// s3rver as a program: prints its port, and keeps its objects in the folder that is its argument.
import S3rver from 's3rver'

const [directory, bucket] = process.argv.slice(2)
const store = new S3rver({
  address: '127.0.0.1',
  port: 0,
  silent: true,
  directory: directory!,
  vhostBuckets: false,
  configureBuckets: [{ name: bucket!, configs: [] }],
})
const { port } = await store.run()
process.stdout.write(`${port}\n`)
process.once('SIGTERM', () => process.exit(0))
