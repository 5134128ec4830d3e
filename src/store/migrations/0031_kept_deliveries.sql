-- When a node of ours stored the mail of this delivery: an attempt after that one is answered 250 and stores nothing. Null:
-- not stored here yet, or by a release before this column.
alter table delivery add column kept_at timestamptz;
