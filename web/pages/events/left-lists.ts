import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { accountId } from "../../api/session.ts";
import { type Listed, type Pair, pairOf } from "./record.ts";

/** The state of a list when the user left it. */
export interface LeftList {
  readonly listed: Listed;
  /** Its selected row, by event and webhook. */
  readonly selected: string | null;
  readonly scrollY: number;
}

/**
 * Lists that "back" returns to, by browser history entry: the same rows in the same place, whatever has arrived since.
 * Only the tab knows them, and only the last few.
 */
const lists = new Map<string, LeftList>();
const kept = 8;
let entries = 0;

export const findList = (entry: string): LeftList | undefined => lists.get(entry);

/**
 * An id for the history entry that shows this URL; it is the same again after "back". Whoever signs in at an entry where
 * somebody else signed out has another one.
 */
export function useHistoryEntry(url: string): string {
  // The browser changes its history entry together with the URL.
  return useMemo(() => {
    let { entry } = stateOfEntry();
    if (typeof entry !== "string") {
      entries += 1;
      entry = `${performance.timeOrigin}-${entries}`;
      note({ entry });
    }
    return `${entry} ${accountId.peek()}`;
  }, [url]);
}

/** Restores a list where the user left it, and remembers its state for when it is left again. */
export function useReturn(entry: string, shown: Omit<LeftList, "scrollY"> | undefined): void {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    const left = findList(entry);
    // Another page of the list starts at the top; how another view starts is up to the router and the browser.
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

/** The list that opens an event: set when its row is followed, and read by the event's page. */
let opening: string | null = null;

/** The row that was followed last, as `pairOf` identifies it. Webhooks' URLs may hold secrets, so it is kept here alone. */
let followed = "";

/**
 * @param listUrl the list's URL
 * @param row undefined: the event was found by its id
 */
export function openFrom(listUrl: string, row?: Pair): void {
  opening = listUrl;
  followed = row ? pairOf(row) : "";
}

export const followedRow = (): string => followed;

export interface WayBack {
  readonly href: string;
  go(): void;
  onClick(event: MouseEvent): void;
}

/** From an event back to the list that opened it, with its filters, rows and selection; otherwise to all events. */
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
      // The router listens further up the DOM tree.
      event.preventDefault();
      event.stopPropagation();
      history.back();
    },
  };
}

/** What this history entry holds besides its URL; it survives a reload. */
function stateOfEntry(): Record<string, unknown> {
  const state: unknown = history.state;
  return typeof state === "object" && state !== null ? { ...state } : {};
}

export function note(facts: Record<string, unknown>): void {
  history.replaceState({ ...stateOfEntry(), ...facts }, "");
}
