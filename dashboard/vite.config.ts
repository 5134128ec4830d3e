// Builds the pages: two entries, hashed files, a placeholder for the server's nonce, and a limit for the first view.
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { earlyTheme } from './build/early-theme.ts'
import { weighFirstView } from './build/first-view.ts'

const folder = import.meta.dirname

/** Modules that nearly every page needs are in one file, because each further file costs a slow machine more than its bytes. */
const common = {
  name: 'common',
  test: /src\/(?:queries|api\/client|parts\/(?:badge|button|card|classes|copy-button|empty|error-note|field|kbd|loaded|menu|nonce|page|shortcut|skeleton|table|theme|time|toaster|toasts|use-title)\.|shell\/(?!found|live|mount|palette|\w+-sheet)|texts\/(?:lists|parts|shell|states|may)\.)/,
}

export default defineConfig({
  root: folder,
  base: '/',
  plugins: [react(), tailwindcss(), earlyTheme(), weighFirstView()],
  // The server replaces it in each answer.
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsDir: 'assets',
    // Files inlined as data: would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: `${folder}/index.html`, desk: `${folder}/desk.html` },
      output: { codeSplitting: { groups: [common] } },
    },
  },
})
