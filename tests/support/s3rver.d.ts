// The part of s3rver that tests use; the package has no types.
declare module 's3rver' {
  interface Stored {
    size: number
    md5: string
  }

  export interface Store {
    getResourcePath(bucket: string, key: string | undefined, resource: 'object' | 'uploads'): string
    putObject(object: { bucket: string; key: string }): Promise<Stored>
    putPart(bucket: string, uploadId: string, number: number, content: unknown): Promise<Stored>
  }

  export default class S3rver {
    constructor(options: {
      address: string
      port: number
      silent: boolean
      directory: string
      vhostBuckets: boolean
      configureBuckets: { name: string; configs: string[] }[]
    })
    store: Store
    run(): Promise<{ address: string; port: number }>
    close(): Promise<void>
  }
}
