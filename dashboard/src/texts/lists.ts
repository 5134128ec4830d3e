// The texts of lists.
export const lists = {
  group: 'Lists',
  next: 'Next row',
  previous: 'Previous row',
  open: 'Open the row',
}
