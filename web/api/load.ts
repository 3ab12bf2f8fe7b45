import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { resyncs } from "../stream/stream.ts";
import { ApiError } from "./client.ts";

/** What a page shows of something that is read from the server: `loading`, then `data` or `error`. */
export interface Loaded<T> {
  /** Stays while it is read again, and when that fails. */
  readonly data: T | undefined;
  /** Of the latest reading. */
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  /** Reads again and keeps what is shown until then. */
  reload(): void;
  /** Shows this from now on: an answer that brought the new state along. */
  put(data: T): void;
}

/**
 * Reads when `key` changes, and again after a gap in the stream. What is read for an earlier key is thrown away.
 *
 * @param known shown for this key until it is read: what somebody comes back to
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
  const running = useRef<AbortController | null>(null);

  const load = useCallback(() => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setState((now) => (now.key === key ? { ...now, isLoading: true } : latest.current.begin()));
    latest.current.read(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setState({ key, data, error: null, isLoading: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError(String(error), 0, "defect", null);
        setState((now) => ({ ...now, key, error: shown, isLoading: false }));
      },
    );
  }, [key]);

  useEffect(() => {
    load();
    return () => running.current?.abort();
  }, [load]);

  useEffect(() => {
    let isFirst = true;
    return resyncs.subscribe(() => {
      if (!isFirst) load();
      isFirst = false;
    });
  }, [load]);

  const put = useCallback(
    (data: T) => {
      running.current?.abort();
      setState({ key, data, error: null, isLoading: false });
    },
    [key],
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
