/**
 * What the work comes to, unless the signal is aborted first: for work that cannot be interrupted. It may then go on, and
 * nobody hears how it ends.
 * @throws the signal's reason
 */
export async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Passes on what comes, until the signal is aborted. @throws the signal's reason */
export async function* eachUntilAborted<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncGenerator<T> {
  const items = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await untilAborted(signal, () => items.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // A source that is stuck would not answer.
    items.return?.().catch(() => {});
  }
}
