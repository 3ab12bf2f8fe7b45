import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import type { Loaded } from "../../stream/load.ts";

/** Data that is read repeatedly while it is on screen: there is no stream for the operator. */
export type Polled<T> = Pick<Loaded<T>, "data" | "error" | "isLoading" | "reload">;

/** Reads now, and again this long after each response; a hidden tab waits until it is visible. */
export function usePolled<T>(read: (signal: AbortSignal) => Promise<T>, everyMs: number): Polled<T> {
  const [state, setState] = useState<Pick<Polled<T>, "data" | "error" | "isLoading">>({
    data: undefined,
    error: null,
    isLoading: true,
  });
  const latest = useRef(read);
  latest.current = read;
  const running = useRef<AbortController | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const load = useCallback(() => {
    clearTimeout(timer.current);
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setState((now) => ({ ...now, isLoading: true }));
    const settle = (change: Partial<Polled<T>>) => {
      if (abort.signal.aborted) return;
      setState((now) => ({ ...now, error: null, ...change, isLoading: false }));
      timer.current = setTimeout(() => {
        if (document.visibilityState === "visible") load();
      }, everyMs);
    };
    latest.current(abort.signal).then(
      (data) => settle({ data }),
      (error: unknown) =>
        settle({ error: error instanceof ApiError ? error : new ApiError(String(error), 0, "", null) }),
    );
  }, [everyMs]);

  useEffect(() => {
    const look = () => {
      if (document.visibilityState === "visible") load();
    };
    load();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      clearTimeout(timer.current);
      running.current?.abort();
    };
  }, [load]);

  return { ...state, reload: load };
}
