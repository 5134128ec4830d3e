// Sets the theme that the reader chose in this browser. Without a choice the style sheet follows the system.
// Marks the pages before the sign-in, which have no frame.
;(() => {
  if (/^\/(?:sign-in|sign-up|confirm|reset|invitation|pending)(?:\/|$)/.test(location.pathname))
    document.documentElement.dataset.access = ''
  try {
    const theme = localStorage.getItem('posthorn.theme')
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  } catch {
    // The page may not use storage, so the system's theme applies.
  }
})()
