import { useEffect, useState } from "preact/hooks";

/** Where the operator is: the screen, and which item on it (`#accounts/t5k2…`). */
export function useFragment(): readonly [screen: string, of?: string] {
  const read = () => location.hash.slice(1);
  const [fragment, setFragment] = useState(read);
  useEffect(() => {
    const follow = () => setFragment(read());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const [screen = "", of] = fragment.split("/");
  return of ? [screen, of] : [screen];
}
