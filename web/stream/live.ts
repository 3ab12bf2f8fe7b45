import { useEffect, useRef } from "preact/hooks";
import { onStream, resyncs, type StreamKind, type StreamMessage } from "./stream.ts";

/**
 * Calls `refresh` after messages of these kinds, at most once every `everyMs`, and after a gap in the stream. A hidden
 * tab waits until it is visible.
 */
export function useRefresh(kinds: readonly StreamKind[], everyMs: number, refresh: () => void): void {
  const latest = useRef(refresh);
  latest.current = refresh;
  const wanted = kinds.join();
  useEffect(() => {
    const set = new Set<string>(wanted.split(","));
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lastAt = 0;
    let isDue = false;
    const run = () => {
      timer = undefined;
      isDue = document.visibilityState === "hidden";
      if (isDue) return;
      lastAt = performance.now();
      latest.current();
    };
    const ask = () => {
      timer ??= setTimeout(run, Math.max(0, lastAt + everyMs - performance.now()));
    };
    const onVisible = () => {
      if (isDue) ask();
    };
    const stop = onStream((messages) => {
      if (messages.some(({ kind }) => set.has(kind))) ask();
    });
    const stopResync = resyncs.subscribe(
      (() => {
        let first = true;
        return () => {
          if (!first) ask();
          first = false;
        };
      })(),
    );
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      clearTimeout(timer);
      stop();
      stopResync();
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [wanted, everyMs]);
}

/** Hands over every message of these kinds, those from one read together. */
export function useMessages(kinds: readonly StreamKind[], handle: (messages: readonly StreamMessage[]) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  const wanted = kinds.join();
  useEffect(() => {
    const set = new Set<string>(wanted.split(","));
    return onStream((messages) => {
      const matching = messages.filter(({ kind }) => set.has(kind));
      if (matching.length > 0) latest.current(matching);
    });
  }, [wanted]);
}

/** Calls `refresh` this long after messages that are meant; those that come until then are part of it. */
export function useAfter(
  kinds: readonly StreamKind[],
  ms: number,
  isMeant: (message: StreamMessage) => boolean,
  refresh: () => void,
): void {
  const latest = useRef(refresh);
  latest.current = refresh;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useMessages(kinds, (messages) => {
    if (timer.current !== undefined || !messages.some(isMeant)) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, ms);
  });
}
