-- What operators see of a node: which version it is, what it runs, and where its operator listener is.
alter table node add column version text;
alter table node add column roles text[];
alter table node add column operator_address text;
