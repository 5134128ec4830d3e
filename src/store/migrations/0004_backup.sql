-- Where a database came from a backup: one row, written by the restore. Nothing leaves such a copy until it is released.
create table restoration (
  only_row boolean primary key default true check (only_row),
  backup_id uuid not null,
  -- The moment that the backup shows.
  taken_at timestamptz not null,
  restored_at timestamptz not null,
  released_at timestamptz
);
