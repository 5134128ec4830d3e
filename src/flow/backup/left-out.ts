// The tables that no backup contains, each with the reason. Backups contain all other tables.
export const leftOut: Record<string, string> = {
  node: 'it lists the living nodes, and a restored copy has its own',
  person_token: 'a link that was used or has expired since must not work again',
  restoration: 'it records the origin of one database',
  schema_function: 'the program that restores has its own functions',
  schema_migration: 'the manifest lists the migrations, and the restore applies them',
  session: 'an ended session must not come back, and a living session is valid only for the original',
  sign_in_failure: 'it limits sign-in attempts at one moment',
}
