// Builds the program of the service: all modules in a few files, which start in half the time. bin/posthorn runs them.
import { utimesSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { Plugin, UserConfig } from 'vite'

const root = import.meta.dirname
const outDir = join(root, 'dist')
const threads = ['src/mail/parse-worker.ts', 'src/http/body/worker.ts'].map((path) => join(root, path))

export default {
  root,
  plugins: [sourcePaths(), completion()],
  ssr: {
    noExternal: true,
    // These packages read their own files at run time.
    external: ['@scalar/fastify-api-reference', 'acme-client'],
  },
  build: {
    ssr: true,
    outDir,
    emptyOutDir: true,
    target: 'node24',
    minify: false,
    rolldownOptions: {
      input: [join(root, 'src/main.ts'), ...threads],
      // One folder for all, because modules find other files by their own path.
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
} satisfies UserConfig

/** Makes modules find other files next to their source, except the scripts of threads, which are built too. */
function sourcePaths(): Plugin {
  return {
    name: 'posthorn:source-paths',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(join(root, 'src/')) || !code.includes('import.meta.')) return null
      const folder = relative(outDir, dirname(id))
      const newPath = (path: string) =>
        threads.includes(join(dirname(id), path)) ? `./${basename(path, '.ts')}.js` : `${folder}/${path}`
      return code
        .replaceAll(/(?<=new URL\(')[^']+(?=', import\.meta\.url\))/g, newPath)
        .replaceAll('import.meta.dirname', `(import.meta.dirname + '/${folder}')`)
    },
  }
}

/** Marks a whole build with the time of its start. bin/posthorn does not use it if a file of the source is newer. */
function completion(): Plugin {
  let startedAt = new Date()
  return {
    name: 'posthorn:completion',
    buildStart() {
      startedAt = new Date()
    },
    writeBundle() {
      const mark = join(outDir, 'complete')
      writeFileSync(mark, '')
      utimesSync(mark, startedAt, startedAt)
    },
  }
}
