import { signal } from "@preact/signals";
import { call } from "../api/client.ts";
import {
  accountOf,
  adoptSession,
  endedAccount,
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
 * The tabs of one browser. A new tab need not ask for a password: it asks the other tabs, and those that have a session
 * hand it over. The session is stored nowhere for that: closing the last tab ends it.
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
  | { readonly kind: "began"; readonly session: Session }
  | { readonly kind: "left"; readonly account: string; readonly why: Leaving };

type Leaving = Extract<NoSession, "left" | "deleted">;
type Answer = Extract<Message, { kind: "answered" }>;

/** Nothing is shown until the others have had this long, because nobody should see a form that disappears. */
const answerWithinMs = 250;
/** If several tabs answer, the one used last wins: it is the one that the new tab was opened from, and may be busy. */
const othersWithinMs = 100;

export const isAskingTabs = signal(false);

const channel = new BroadcastChannel("postrider.session");
const post = (message: Message) => channel.postMessage(message);

/** Asks the other tabs for their session, unless this one has its own, and answers their requests. */
export function shareSession(): void {
  const me = Math.random();
  let best: Answer | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** A late answer is welcome, unless the user has begun to do something else here. */
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
    } else if (data.kind === "began") {
      // A hidden tab has no stream to learn from that its own session has ended.
      const own = mine !== null && document.visibilityState === "hidden" ? accountOf(mine.token) : endedAccount.peek();
      if (accountOf(data.session.token) === own) adoptSession(data.session);
    } else if (data.kind === "left" && mine !== null && accountOf(mine.token) === data.account) {
      leave(data.why);
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

/** Tabs in which a session of the same account has ended go on with this one, so that nobody has to sign in to each. */
export function announceSession(): void {
  const mine = session.peek();
  if (mine !== null) post({ kind: "began", session: mine });
}

/** In all tabs: any that stayed signed in would hand its session to the next one that is opened. */
export function leaveEverywhere(why: Leaving): void {
  const mine = session.peek();
  if (mine === null) return;
  if (isView.peek()) endSession(why);
  else {
    post({ kind: "left", account: accountOf(mine.token), why });
    leave(why);
  }
}

/** Has the server revoke the token, and forgets it at once, whether or not the server answers. */
function leave(why: Leaving): void {
  // The request has the token by the time that `call` returns, and goes out even if the tab is closed now.
  if (why === "left") call("/v1/tenants/auth/logout", { method: "POST", keepalive: true }).catch(() => {});
  endSession(why);
}
