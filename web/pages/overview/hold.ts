import { useRef, useState } from "preact/hooks";

/**
 * Keeps what is shown for as long as the user points at it, or moves through it by keyboard: a row that appears above
 * would put another one under the finger.
 *
 * @param isFree what is shown stays in its place anyway
 */
export function useHold<T>(latest: T, isFree: boolean) {
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const isHeld = !isFree && (isPointed || isFocused);
  const shown = useRef(latest);
  if (!isHeld) shown.current = latest;
  return {
    shown: shown.current,
    holding: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      // A clicked button keeps the focus, so only visible focus counts.
      onFocusIn: ({ target }: { target: EventTarget | null }) =>
        setFocused(target instanceof Element && target.matches(":focus-visible")),
      onFocusOut: () => setFocused(false),
    },
  };
}
