-- Changing the secret key while nodes run: which key comes next, which ones were before, and what each node has.

-- The check value of the key that comes next, while nodes are being given it.
alter table database_identity add column next_key_check bytea;

create table former_secret_key (
  key_check bytea primary key,
  -- What knows the return paths and cursors that were made under it: derived keys, sealed under the present one. Null once all
  -- of those have run out, and of a key that was lost.
  sealed_verifiers bytea,
  replaced_at timestamptz not null,
  -- Null: something may still be sealed with it.
  ended_at timestamptz
);

-- By their check values the keys that the node has, the one that it seals with first. Null: not said yet.
alter table node add column key_checks bytea[];
