// The settings of the embedded PostgreSQL, for one service on a small machine. For more tuning, use your own server.

/** Name of the role and of the database that hold everything. */
export const superuser = 'posthorn'

const values: Record<string, string> = {
  // Security: a unix socket in a 0700 folder and no TCP port. The path is relative to the cluster, and therefore short.
  listen_addresses: '',
  unix_socket_directories: '../socket',
  unix_socket_permissions: '0700',
  port: '5432',
  // Acknowledged mail must survive: these are the defaults, stated explicitly.
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // A node uses 17 connections: this allows ten nodes, and commands.
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '2GB',
  min_wal_size: '256MB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  // Queue tables change fast: vacuum often, so that dead rows never pile up.
  autovacuum_naptime: '10s',
  autovacuum_vacuum_cost_limit: '1000',
  // Plans find rows by indexes: a tenth of the usual sample is as good, at a tenth of the cost.
  default_statistics_target: '10',
  cluster_name: 'posthorn',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] %d ',
  log_timezone: 'UTC',
  timezone: 'UTC',
}

/** PostgreSQL's command line, without the folder. */
export const settings: string[] = Object.entries(values).flatMap(([name, value]) => [
  '-c',
  `${name}=${value}`,
])
