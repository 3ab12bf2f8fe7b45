import { isLong } from "../domain/growing-queue.ts";
import type { MailFact } from "../domain/mail.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Jobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { createNotices, type Notices } from "./notices.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { createPost, type Post, type PostSettings } from "./post.ts";
import { createQueueWatch } from "./queue-watch.ts";

export interface MailSettings extends PostSettings {
  readonly operators: readonly string[];
}

/** Everything about mail, for a server that has an SMTP server configured. */
export interface Mail {
  readonly post: Post;
  readonly notices: Notices;
  readonly outbox: Pick<Outbox, "wake">;
  start(): void;
  /** Unsent mail stays in the outbox. */
  stop(): Promise<void>;
}

export interface MailDeps {
  settings: MailSettings;
  extraCa: string | null;
  store: Store;
  jobs: Pick<Jobs, "holds">;
  clock: Clock;
  log: Log;
  baseUrl(): string;
  isDiskLow(): boolean;
  /** See `OutboxDeps`. */
  open(fact: MailFact, now: number): MailFact | null;
  onSent(): void;
  onFailure(): void;
}

export function createMail(deps: MailDeps): Mail {
  const { settings, extraCa, store, jobs, clock, log, baseUrl, isDiskLow, ...rest } = deps;
  const post = createPost(settings, extraCa);
  // The holder of that job takes care of background work, and there is only one at a time.
  const mayRun = () => jobs.holds("janitor");
  const context = () => ({ baseUrl: baseUrl() });
  const stands = {
    "disk.low": isDiskLow,
    "queue.growing": async () => isLong((await store.queueDepth()).pending),
  };
  const outbox = createOutbox({ store, post, clock, log, mayRun, stands, context, ...rest });
  const notices = createNotices({ store, clock, log, operators: settings.operators, wake: outbox.wake });
  const queueWatch = createQueueWatch({
    store,
    clock,
    mayRun,
    onGrowing: (found) => notices.operator("queue.growing", { at: clock.now(), ...found }),
  });
  return {
    post,
    notices,
    outbox,
    start() {
      outbox.start();
      if (settings.operators.length > 0) queueWatch.start();
    },
    async stop() {
      queueWatch.stop();
      await notices.flush();
      await outbox.stop();
    },
  };
}
