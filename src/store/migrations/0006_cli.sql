-- When an operator first read a mail that is kept for them; null: nobody has. Reports, which the service reads, have none.
alter table kept_mail add column read_at timestamptz;
