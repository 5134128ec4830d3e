// Downloads a file that was made in the page.
export function download(filename: string, contentType: string, content: string | string[]): void {
  const url = URL.createObjectURL(new Blob([content].flat(), { type: contentType }))
  const link = document.createElement('a')
  link.href = url
  link.download = filename
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
