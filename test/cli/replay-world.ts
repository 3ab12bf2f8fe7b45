import { expect } from "bun:test";
import { batchOf, type Hook, register, until } from "../support/api-server.ts";
import type { TestAccount } from "../support/test-app.ts";
import { useTyped } from "../support/typed.ts";

/** What the commands of replays need, for all tests of a file. */
export function useReplays() {
  const relay = useTyped();

  /** An account whose events have all failed, and whose webhook would take them by now. */
  async function failing(events: number): Promise<{ account: TestAccount; hook: Hook; ids: readonly string[] }> {
    const account = await relay.app.account();
    const hook = relay.hooks.hook(404);
    await register(account, hook.url);
    const ids: string[] = (await batchOf(relay.app, account, events)).body.eventIds;
    await until(
      () => account.get("/v1/events/state/FAILED?size=1"),
      ({ body }) => body.total === events,
    );
    hook.answer = 200;
    hook.received.length = 0;
    return { account, hook, ids };
  }

  return { relay, run: relay.run, failing };
}

export const receivedBy = ({ received }: Hook) => received.map(({ headers }) => headers["service-event-id"]);
export const replaysOf = async (account: TestAccount) => (await account.get("/v1/events/replays")).body.replays;
export const summary = (text: string) => expect.stringMatching(new RegExp(`^rpl_\\w+ ${text}$`));
