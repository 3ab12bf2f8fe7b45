/**
 * Where in the queue the records of tenant `$1` are whose event numbers and keys are `$2` and `$3`. Each is looked up, and
 * then found by its place, `pending.ctid = found.place` (see `settleText`). A caller that has not locked them does not find
 * records being written at this moment.
 */
export const placesInQueue = `unnest($2::bigint[], $3::bigint[]) as given (event_seq, key)
  cross join lateral (
    select record.ctid as place from pending record
    where record.tenant_key = $1::bigint and record.event_seq = given.event_seq and record.key = given.key offset 0) found`;
