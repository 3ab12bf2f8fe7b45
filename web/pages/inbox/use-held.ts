import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Held<T> {
  readonly list: RefObject<HTMLUListElement | null>;
  readonly shown: readonly T[];
  /** How many have arrived that are not shown; they may be more than are kept. */
  readonly held: number;
  /** Whether it arrived after the list was first shown. */
  isNew(item: T): boolean;
  release(): void;
}

/**
 * Holds back new items while somebody is reading: with the pointer on the list, or scrolled away from its beginning,
 * nothing moves and nothing disappears. A cleared list is shown empty immediately.
 *
 * @param items everything, newest first
 */
export function useHeld<T extends { readonly id: string }>(items: readonly T[]): Held<T> {
  const list = useRef<HTMLUListElement>(null);
  const [kept, setKept] = useState(items);
  const known = useRef(new Set(items.map(({ id }) => id)));
  const shown = items.length === 0 ? items : kept;

  const isRead = () => {
    const element = list.current;
    if (!element || shown.length === 0) return false;
    const isUnderPointer = matchMedia("(hover: hover)").matches && element.matches(":hover");
    return isUnderPointer || element.getBoundingClientRect().top < 0;
  };
  useEffect(() => {
    const releaseUnlessRead = () => {
      if (!isRead()) setKept(items);
    };
    releaseUnlessRead();
    const element = list.current;
    element?.addEventListener("pointerleave", releaseUnlessRead);
    return () => element?.removeEventListener("pointerleave", releaseUnlessRead);
  }, [items]);

  const place = items.findIndex(({ id }) => id === shown[0]?.id);
  return {
    list,
    shown,
    held: place < 0 ? items.length : place,
    isNew: ({ id }) => !known.current.has(id),
    release: () => setKept(items),
  };
}
