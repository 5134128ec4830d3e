// The operator's desk: the entry of what is served on the operator's listener.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import '../theme.css'

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <h1>The operator’s desk</h1>
  </StrictMode>,
)
