// Measures the files that a browser fetches for the first view, and fails the build if they are too large.
import { gzipSync } from 'node:zlib'
import type { Plugin, Rolldown } from 'vite'

const mostBytes = 150_000
/** The modules of each first view: the entry, and those of its route. The desk has no limit, because it is used on the machine. */
const views: Record<string, string[]> = {
  'sign-in': ['index.html', 'src/pages/access/sign-in.tsx'],
  overview: ['index.html', 'src/shell/frame.tsx', 'src/pages/overview/overview.tsx'],
  mail: ['index.html', 'src/shell/frame.tsx', 'src/pages/mail/mail.tsx'],
  desk: ['desk.html'],
}

export function weighFirstView(): Plugin {
  return {
    name: 'posthorn:first-view',
    apply: 'build',
    writeBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const [name, modules] of Object.entries(views)) {
          const files = filesOf(bundle, modules)
          const bytes = [...files].reduce((sum, file) => sum + packedBytes(bundle[file]!), 0)
          const line = `first view ${name}: ${(bytes / 1000).toFixed(1)} kB gzipped in ${files.size} files`
          if (bytes > mostBytes && name !== 'desk') this.error(`${line}; ${mostBytes / 1000} kB are the most`)
          this.info(line)
        }
      },
    },
  }
}

/** Returns the script and style files of these modules and of all that they import statically. */
function filesOf(bundle: Rolldown.OutputBundle, modules: string[]): Set<string> {
  const files = new Set<string>()
  const add = (chunk: Rolldown.OutputBundle[string] | undefined) => {
    if (chunk?.type !== 'chunk' || files.has(chunk.fileName)) return
    files.add(chunk.fileName)
    for (const style of chunk.viteMetadata?.importedCss ?? []) files.add(style)
    for (const name of chunk.imports) add(bundle[name])
  }
  for (const module of modules)
    add(Object.values(bundle).find((one) => one.type === 'chunk' && one.facadeModuleId?.endsWith(module)))
  return files
}

function packedBytes(file: Rolldown.OutputBundle[string]): number {
  return gzipSync(file.type === 'chunk' ? file.code : file.source).length
}
