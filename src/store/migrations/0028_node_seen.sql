-- When the node was last heard of. A node that hangs holds its lock, and this moment passes. Null: not heard of yet, or a
-- release before this column.
alter table node add column seen_at timestamptz;
