import type { ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { corrections } from "../api/server-time.ts";
import { reopenings } from "./reopenings.ts";
import { resyncs, untilBegun } from "./stream.ts";

/** What a page shows of something that is read from the server: `loading`, then `data` or `error`. */
export interface Loaded<T> {
  /** Stays while it is read again, and when that fails. */
  readonly data: T | undefined;
  /** The error of the latest read. */
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  /** Reads again and keeps what is shown until then. */
  reload(): void;
  /** Shows this from now on: for responses that contain the new state. */
  put(data: T): void;
}

/** A read that takes longer may have lost its connection. */
const patienceMs = 10_000;

/**
 * Reads when `key` changes, again after a gap in the stream or once the server's time is known to be another, and, after a
 * failure, when the stream is back. What is read for an earlier key is discarded.
 *
 * @param known shown for this key until it is read: what the user comes back to
 */
export function useLoaded<T>(key: string, read: (signal: AbortSignal) => Promise<T>, known?: T): Loaded<T> {
  const begin = (): { key: string; data?: T; error: ApiError | null; isLoading: boolean } => ({
    key,
    ...(known !== undefined && { data: known }),
    error: null,
    isLoading: true,
  });
  const [state, setState] = useState(begin);
  const latest = useRef({ read, begin });
  latest.current = { read, begin };
  const running = useRef<{ abort: AbortController; since: number } | null>(null);
  /** It was requested again in the meantime. */
  const isStale = useRef(false);
  const hasFailed = useRef(false);

  const drop = useCallback(() => {
    running.current?.abort.abort();
    running.current = null;
    isStale.current = false;
  }, []);

  const load = useCallback(() => {
    // Where news arrives faster than it can be read, aborting the current read would mean never showing anything.
    if (running.current && Date.now() - running.current.since < patienceMs) {
      isStale.current = true;
      return;
    }
    drop();
    const abort = new AbortController();
    running.current = { abort, since: Date.now() };
    setState((now) => (now.key === key ? { ...now, isLoading: true } : latest.current.begin()));
    const settle = (error: ApiError | null, data?: T) => {
      if (abort.signal.aborted) return;
      const isLoading = isStale.current;
      hasFailed.current = error !== null;
      setState((now) => (error ? { ...now, key, error, isLoading } : { key, data: data as T, error: null, isLoading }));
      drop();
      if (isLoading) load();
    };
    const { read } = latest.current;
    const reading = untilBegun().then(() => read(abort.signal));
    reading.then(
      (data) => settle(null, data),
      (error: unknown) => settle(error instanceof ApiError ? error : new ApiError(String(error), 0, "defect", null)),
    );
  }, [key, drop]);

  useEffect(() => {
    load();
    return drop;
  }, [load, drop]);

  useEffect(() => {
    const loadAnew = () => {
      drop();
      load();
    };
    const ends = [
      onRise(resyncs, load),
      onRise(corrections, loadAnew),
      onRise(reopenings, () => {
        if (hasFailed.current || running.current) loadAnew();
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [load, drop]);

  const put = useCallback(
    (data: T) => {
      drop();
      hasFailed.current = false;
      setState({ key, data, error: null, isLoading: false });
    },
    [key, drop],
  );

  const now = state.key === key ? state : begin();
  return {
    data: now.data,
    error: now.error,
    isLoading: now.isLoading,
    reload: load,
    put,
  };
}

/** A subscription starts with the current value. */
function onRise(signal: ReadonlySignal<number>, run: () => void): () => void {
  const before = signal.peek();
  return signal.subscribe((value) => {
    if (value > before) run();
  });
}
