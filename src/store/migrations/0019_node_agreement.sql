-- The settings that all nodes must share, by name: a node with another value loses, refuses or keeps mail that the others would not.
alter table node add column agreed jsonb;
-- The name of its machine, by which operators know it.
alter table node add column host text;
