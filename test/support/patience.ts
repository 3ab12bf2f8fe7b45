/**
 * How long a test waits for what is certain to come. It waits for a signal or polls; this only ends a test that would
 * hang. Machines running many things at the same time have taken ten times as long as an idle one.
 */
export const patienceMs = 60_000;

/**
 * Anything that takes this long was held up by something else, on any machine: an attempt to a webhook that does not
 * respond ends after 10 s. Exact durations are for `bun run abuse` to measure.
 */
export const heldUpMs = 10_000;
