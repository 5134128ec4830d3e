// Sets the theme that was chosen here before; without one the style sheet follows the system.
;(() => {
  try {
    const theme = localStorage.getItem('posthorn.theme')
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  } catch {
    // Storage is closed to this page: the system's theme it is.
  }
})()
