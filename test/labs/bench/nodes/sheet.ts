/**
 * What a prototype of the PostgreSQL backend took of the server's processors to accept and settle an event, by how many went
 * into one statement: the price of the statements with nothing around them, on a machine of its own.
 */
const prototype = [
  { batch: 8, us: 69 },
  { batch: 32, us: 35 },
  { batch: 256, us: 16 },
] as const;

/** Between the measured batches by powers, as a statement's own price is shared by what it carries; beyond, so extended. */
export function prototypeUs(batch: number): number {
  const [first, second, third] = prototype;
  const [a, b] = batch < second.batch ? [first, second] : [second, third];
  const slope = Math.log(b.us / a.us) / Math.log(b.batch / a.batch);
  return a.us * (batch / a.batch) ** slope;
}
