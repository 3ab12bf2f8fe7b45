import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { Listed } from "./record.ts";

/** How a list stood when somebody left it. */
export interface LeftList {
  readonly listed: Listed;
  /** Its selected row, by its pair. */
  readonly selected: string | null;
  readonly scrollY: number;
}

/**
 * Lists that "back" returns to, by the entry of the browser's history: the same rows at the same place, whatever has come
 * since. Only the tab knows them, and only the last few.
 */
const lists = new Map<string, LeftList>();
const kept = 8;
let entries = 0;

export const findList = (entry: string): LeftList | undefined => lists.get(entry);

/** Names the entry of the history that shows this URL; it is the same again after "back". */
export function useHistoryEntry(url: string): string {
  // The browser changes its entry together with the URL.
  return useMemo(() => {
    const known = stateOfEntry().entry;
    if (typeof known === "string") return known;
    entries += 1;
    const entry = `${performance.timeOrigin}-${entries}`;
    note({ entry });
    return entry;
  }, [url]);
}

/** Takes up a list where somebody left it, and remembers how it stands for when it is left. */
export function useReturn(entry: string, shown: Omit<LeftList, "scrollY"> | undefined): void {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    const left = findList(entry);
    // Another page of the list begins at its top; how another view begins is the router's and the browser's.
    if (left || !isFirst.current) scrollTo(0, left?.scrollY ?? 0);
    isFirst.current = false;
    const onScroll = () => {
      const list = findList(entry);
      if (list) lists.set(entry, { ...list, scrollY: window.scrollY });
    };
    addEventListener("scroll", onScroll, { passive: true });
    return () => removeEventListener("scroll", onScroll);
  }, [entry]);

  useLayoutEffect(() => {
    if (!shown) return;
    lists.delete(entry);
    lists.set(entry, { ...shown, scrollY: window.scrollY });
    for (const oldest of [...lists.keys()].slice(0, -kept)) lists.delete(oldest);
  });
}

/** The list that opens an event: said as its row is followed, and taken up by the event's page. */
let opening: string | null = null;

/** @param listUrl the list as it stands in the URL */
export function openFrom(listUrl: string): void {
  opening = listUrl;
}

export interface WayBack {
  readonly href: string;
  go(): void;
  onClick(event: MouseEvent): void;
}

/** From an event to the list that it was opened from, with its filters, rows and selection; else to all events. */
export function useWayBack(): WayBack {
  const { route } = useLocation();
  useLayoutEffect(() => {
    if (opening !== null) note({ list: opening });
    opening = null;
  }, []);
  const { list } = { list: opening, ...stateOfEntry() };
  const hasList = typeof list === "string";
  const href = hasList ? list : "/events";
  return {
    href,
    go: () => (hasList ? history.back() : route(href)),
    onClick(event) {
      if (!hasList || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      // The router listens further out.
      event.preventDefault();
      event.stopPropagation();
      history.back();
    },
  };
}

/** What this entry of the history holds beside its URL; it outlives a reload. */
export function stateOfEntry(): Record<string, unknown> {
  const state: unknown = history.state;
  return typeof state === "object" && state !== null ? { ...state } : {};
}

export function note(facts: Record<string, unknown>): void {
  history.replaceState({ ...stateOfEntry(), ...facts }, "");
}
