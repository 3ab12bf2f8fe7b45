/**
 * How long a test waits for what is sure to come. It waits for a signal or asks again; this only ends a test that would
 * hang. Machines that run many things at once have taken ten times as long as an idle one.
 */
export const patienceMs = 60_000;

/**
 * What takes this long was held up by something else, on whatever machine: an attempt to a webhook that does not answer
 * ends after 10 s. How long it takes is for `bun run abuse` to measure.
 */
export const heldUpMs = 10_000;
