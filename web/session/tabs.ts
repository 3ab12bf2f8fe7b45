import { signal } from "@preact/signals";
import { call } from "../api/client.ts";
import {
  accountOf,
  adoptSession,
  endSession,
  isSignedIn,
  isView,
  type NoSession,
  type Session,
  session,
} from "../api/session.ts";
import { isUtc, showInUtc } from "../format/zone.ts";
import { lastUseAt } from "./renewal.ts";

/**
 * The tabs of one browser. A new one need not ask for a password: it asks the others, and those who have a session hand it
 * over. Nothing keeps it for that: the last tab that is closed takes it along.
 */
type Message =
  | { readonly kind: "asked"; readonly by: number }
  | {
      readonly kind: "answered";
      readonly to: number;
      readonly session: Session;
      readonly usedAt: number;
      readonly inUtc: boolean;
    }
  | { readonly kind: "left"; readonly account: string; readonly why: Leaving };

type Leaving = Extract<NoSession, "left" | "deleted">;
type Answer = Extract<Message, { kind: "answered" }>;

/** Nothing is shown until the others have had this long, as nobody should see a form that goes away. */
const answerWithinMs = 250;
/** Where several answer: the tab that was used last is the one that the new one was opened from. */
const othersWithinMs = 25;

export const isAskingTabs = signal(false);

const channel = new BroadcastChannel("postrider.session");
const post = (message: Message) => channel.postMessage(message);

/** Asks the other tabs for their session, unless this one has its own, and answers them. */
export function shareSession(): void {
  const me = Math.random();
  let best: Answer | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** An answer that comes late is welcome, but not to somebody who has begun to do something else here. */
  let mayTake = !isSignedIn.peek();

  function settle(): void {
    if (best !== null && mayTake) {
      showInUtc(best.inUtc);
      adoptSession(best.session);
    }
    mayTake &&= best === null;
    isAskingTabs.value = false;
  }

  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    const mine = isView.peek() ? null : session.peek();
    if (data.kind === "asked" && mine !== null) {
      post({ kind: "answered", to: data.by, session: mine, usedAt: lastUseAt(), inUtc: isUtc.peek() });
    } else if (data.kind === "answered" && data.to === me && mayTake) {
      if (best === null || data.usedAt > best.usedAt) best = data;
      clearTimeout(timer);
      timer = setTimeout(settle, othersWithinMs);
    } else if (data.kind === "left" && mine !== null && accountOf(mine.token) === data.account) {
      void leave(data.why);
    }
  };

  if (!mayTake) return;
  isAskingTabs.value = true;
  timer = setTimeout(settle, answerWithinMs);
  const turnAway = () => {
    mayTake = false;
  };
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, turnAway, { once: true, passive: true });
  post({ kind: "asked", by: me });
}

/** In all tabs: whichever went on would hand its session to the next one that is opened. */
export async function leaveEverywhere(why: Leaving): Promise<void> {
  const mine = session.peek();
  if (mine === null) return;
  if (isView.peek()) return endSession(why);
  post({ kind: "left", account: accountOf(mine.token), why });
  await leave(why);
}

/** Revokes the token at the server too; should that fail, this tab still forgets it. */
async function leave(why: Leaving): Promise<void> {
  try {
    if (why === "left") await call("/v1/tenants/auth/logout", { method: "POST" });
  } catch {
    // Signed out here is what was asked for.
  }
  endSession(why);
}
