import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { type Choice, readChoice, urlOf } from "./choice.ts";

const settleMs = 300;

/**
 * The choice as it is being made, and as it is once nobody has typed for a moment: only then does it go into the URL, so
 * that a reload keeps it, and to the server. Following a link, or going back, brings a different one.
 */
export function useChoice(page: number): { choice: Choice; settled: Choice; change(choice: Choice): void } {
  const { query, route } = useLocation();
  const given = readChoice(query);
  const [choice, setChoice] = useState(given);
  const [settled, setSettled] = useState(given);
  const written = useRef(urlOf(given, 1));

  const inUrl = urlOf(given, 1);
  useEffect(() => {
    if (inUrl === written.current) return;
    written.current = inUrl;
    setChoice(given);
    setSettled(given);
  }, [inUrl]);

  useEffect(() => {
    if (choice === settled) return;
    const timer = setTimeout(() => {
      setSettled(choice);
      const url = urlOf(choice, page);
      written.current = urlOf(choice, 1);
      if (url !== urlOf(given, page)) route(url, true);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [choice]);

  return { choice, settled, change: setChoice };
}
