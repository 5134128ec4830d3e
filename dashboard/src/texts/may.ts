// Why somebody cannot do something here.
export const may = {
  change: 'As a viewer you can look at everything and change nothing. An owner can make you a member.',
  own: 'Only owners can do this. They are listed under Members.',
}
