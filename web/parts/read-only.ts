import { createContext } from "preact";
import { useContext } from "preact/hooks";

/**
 * Why nothing can be changed here; null: it can. As long as there is a reason, whatever would change something is off and
 * gives it, instead of being pressed and refused.
 */
export const ReadOnly = createContext<string | null>(null);

export const useReadOnly = (): string | null => useContext(ReadOnly);
