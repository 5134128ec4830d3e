// Sets the title of the browser's window while a page is shown.
import { useEffect } from 'react'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === 'Posthorn' ? title : `${title} · Posthorn`
  }, [title])
}
