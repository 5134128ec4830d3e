// Sets the theme that the reader chose in this browser, which the dashboard uses too, and marks keyboards of Apple.
;(() => {
  const { classList } = document.documentElement
  classList.toggle('mac', /Mac|iPhone|iPod|iPad/i.test(navigator.platform))
  let theme = null
  try {
    theme = localStorage.getItem('posthorn.theme')
  } catch {
    // The page may not use storage, so the system's theme applies.
  }
  const isSystem = theme !== 'light' && theme !== 'dark'
  if (theme === 'dark' || (isSystem && matchMedia('(prefers-color-scheme: dark)').matches))
    classList.add('dark')
})()
