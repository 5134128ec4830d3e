// The tables that no backup contains, each with the reason. Backups contain all other tables.
export const leftOut: Record<string, string> = {
  node: 'it names the nodes that live, and a restored copy has its own',
  person_token: 'a link that was used or has run out since must not work again',
  restoration: 'it says of one database where that came from',
  schema_function: 'the program that restores brings the functions',
  schema_migration: 'the manifest names them, and the restore applies them',
  session: 'one that was ended since must not live again, and one that lives is for the original alone',
  sign_in_failure: 'it says of one moment who may try to sign in',
}
