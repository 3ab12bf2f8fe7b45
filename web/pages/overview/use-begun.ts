import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Webhook } from "../../api/types.ts";
import { useLatestReplays } from "../replays/under-way.tsx";
import { type Begun, inPlace } from "./begun.ts";
import type { Failing } from "./failing.ts";

/** The replays started from failure cards, so that the cards can show their progress. */
export interface Replayed {
  readonly isAny: boolean;
  begin(begun: Begun): void;
  /** Progress of the latest one, if any. @param cause "": everything that failed for the webhook */
  rowOf(webhook: string | null, cause: string): JSX.Element | null;
  inPlace(failing: readonly Failing[]): readonly Failing[];
  /** Others that are under way. */
  readonly others: JSX.Element | null;
}

/** @param only for the page of one webhook: what cannot deliver to it is left out */
export function useBegun(webhooks: readonly Webhook[], only?: Webhook): Replayed {
  const [begun, setBegun] = useState<readonly Begun[]>([]);
  /** What was shown when the latest of them was started, and what is shown now. */
  const before = useRef<readonly Failing[]>([]);
  const shown = useRef<readonly Failing[]>([]);
  const startedHere = begun.map(({ replay }) => replay);
  const latest = useLatestReplays(startedHere, webhooks, only);
  return {
    isAny: begun.length > 0,
    begin(one) {
      before.current = shown.current;
      setBegun((earlier) => [...earlier, one]);
    },
    rowOf(webhook, cause) {
      const found = begun.findLast((one) => one.webhook === webhook && one.cause === cause);
      return found ? latest.rowOf(found.replay) : null;
    },
    inPlace(failing) {
      shown.current = inPlace(failing, before.current, begun);
      return shown.current;
    },
    others: latest.others,
  };
}
