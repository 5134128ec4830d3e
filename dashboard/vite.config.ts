// How the pages are built: two entries, hashed files, a nonce that the server puts in, and the weight of the first view.
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { earlyTheme } from './build/early-theme.ts'
import { weighFirstView } from './build/first-view.ts'

const folder = import.meta.dirname

/** What nearly every page needs goes into one file, for each of its own costs a slow machine more than its bytes; the rest goes with its pages. */
const common = {
  name: 'common',
  test: /src\/(?:queries|api\/client|parts\/(?:badge|button|card|classes|copy-button|empty|error-note|field|kbd|loaded|menu|nonce|page|shortcut|skeleton|table|theme|time|toaster|toasts|use-title)\.|shell\/(?!found|live|mount|palette|\w+-sheet)|texts\/(?:lists|parts|shell|states|may)\.)/,
}

export default defineConfig({
  root: folder,
  base: '/',
  plugins: [react(), tailwindcss(), earlyTheme(), weighFirstView()],
  // The server replaces this in each answer.
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsDir: 'assets',
    // A file written into the page as data: would need a wider policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: `${folder}/index.html`, desk: `${folder}/desk.html` },
      output: { codeSplitting: { groups: [common] } },
    },
  },
})
