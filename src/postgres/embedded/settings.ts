// The settings PostgreSQL runs with, chosen for one service on a small machine; who tunes further brings a server.

/** The role and the database that everything belongs to. */
export const superuser = 'posthorn'

const values: Record<string, string> = {
  // Security: a unix socket in a 0700 folder and no TCP port at all. The path is relative to the cluster, hence short.
  listen_addresses: '',
  unix_socket_directories: '../socket',
  unix_socket_permissions: '0700',
  port: '5432',
  // What was acknowledged stays: these are the defaults, said aloud.
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // A node takes 17: ten of them, and commands.
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '2GB',
  min_wal_size: '256MB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  // Queue tables turn over fast: look often, so that dead rows never pile up.
  autovacuum_naptime: '10s',
  autovacuum_vacuum_cost_limit: '1000',
  // Plans look rows up by their indexes: a tenth of the usual sample tells as much, at a tenth of the price.
  default_statistics_target: '10',
  cluster_name: 'posthorn',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] %d ',
  log_timezone: 'UTC',
  timezone: 'UTC',
}

/** PostgreSQL's command line, folder aside. */
export const settings: string[] = Object.entries(values).flatMap(([name, value]) => [
  '-c',
  `${name}=${value}`,
])
