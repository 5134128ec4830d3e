// The tables that no backup holds, each with the reason; every other table is in it.
export const leftOut: Record<string, string> = {
  node: 'it names the nodes that live, and a restored copy has its own',
  restoration: 'it says of one database where that came from',
  schema_function: 'the program that restores brings the functions',
  schema_migration: 'the manifest names them, and the restore applies them',
}
