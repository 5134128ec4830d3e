// The entry of the dashboard.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './theme.css'

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <h1>Posthorn</h1>
  </StrictMode>,
)
