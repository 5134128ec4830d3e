create or replace function histogram(buckets smallint[], amounts integer[]) returns integer[]
language plpgsql immutable
as $$
declare
  counts integer[];
begin
  for i in 1 .. cardinality(buckets) loop
    continue when buckets[i] is null;
    counts := coalesce(counts, array_fill(0, array[112]));
    counts[buckets[i] + 1] := counts[buckets[i] + 1] + amounts[i];
  end loop;
  return counts;
end $$;
