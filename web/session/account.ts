import { effect, signal } from "@preact/signals";
import { call } from "../api/client.ts";
import { isSignedIn } from "../api/session.ts";
import type { Account } from "../api/types.ts";
import { reopenings } from "../stream/reopenings.ts";
import { onStream, resyncs, untilBegun } from "../stream/stream.ts";
import { changesAccount } from "./account-changes.ts";

/** Who is signed in: plan, limits and usage. Null until it is known. */
export const account = signal<Account | null>(null);

/** The event counter may lag by this much, and so may all of it when a read was not answered. */
const refreshEveryMs = 5_000;

let asked = 0;
/** The latest read that was answered. */
let answered = 0;

/** An answer that comes after that to a later read is dropped: it is older, or of an account that has signed out. */
export async function refreshAccount(): Promise<void> {
  asked += 1;
  const read = asked;
  if (isSignedIn.peek()) await untilBegun();
  const now = isSignedIn.peek() ? await call<Account>("/v1/tenants/me") : null;
  if (read < answered) return;
  answered = read;
  account.value = now;
}

/** Keeps `account` up to date for as long as somebody is signed in. */
export function followAccount(): void {
  let isAsked = false;
  let again: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    clearTimeout(again);
    again = undefined;
    refreshAccount().catch(() => {
      clearTimeout(again);
      again = setTimeout(refresh, refreshEveryMs);
    });
  };
  effect(() => {
    resyncs.value;
    isSignedIn.value;
    refresh();
  });
  effect(() => {
    if (reopenings.value > 0 && again !== undefined) refresh();
  });
  onStream((messages) => {
    const changes = messages.filter(({ kind }) => kind === "account.changed");
    if (changes.some((message) => changesAccount(String(message.data().changed)))) refresh();
    else if (messages.some(({ kind }) => kind === "event.accepted")) {
      if (isAsked) return;
      isAsked = true;
      setTimeout(() => {
        isAsked = false;
        refresh();
      }, refreshEveryMs);
    }
  });
}
