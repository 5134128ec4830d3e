// Mounts the pages of an entry in its document, with their queries, shortcuts and short messages.
import { QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { passNonceOn } from '../parts/nonce.ts'
import { listenForShortcuts } from '../parts/shortcut.ts'
import { Toaster } from '../parts/toaster.tsx'
import { queries } from '../queries.ts'
import '../theme.css'

export function mount(pages: ReactNode): void {
  passNonceOn()
  listenForShortcuts()
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        {pages}
        <Toaster />
      </QueryClientProvider>
    </StrictMode>,
  )
}
