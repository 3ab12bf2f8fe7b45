import { createHash } from "node:crypto";
import { canGetMail, isOld, isStanding, type MailFact, type Standing, type WaitingMail } from "../domain/mail.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";
import { unlessDamaged } from "../store/unless-damaged.ts";
import { type LetterContext, writeLetter } from "./letters.ts";
import type { Post } from "./post.ts";

export interface Outbox {
  start(): void;
  /** Called when something was queued here. */
  wake(): void;
  /** Resolves when nothing is being sent any longer, or is not waited for. Nobody waits for it a second time. */
  stop(): Promise<void>;
}

export interface OutboxDeps {
  store: Pick<Store, "dueMail" | "mailSent" | "mailDropped" | "mailNotSent" | "findTenant">;
  post: Post;
  clock: Clock;
  log: Log;
  /** Whether this server is the one that sends, of those that share the store. */
  mayRun(): boolean;
  /** Opens what was sealed for the outbox; null when it is of no use any longer. */
  open(fact: MailFact, now: number): MailFact | null;
  /** Whether things still stand as mails of these kinds say. */
  stands: Readonly<Record<Standing, () => boolean | Promise<boolean>>>;
  context(): LetterContext;
  /** For metrics. */
  onSent(): void;
  onFailure(): void;
}

/** How much later a mail leaves that another server queued. */
const pollMs = 10_000;
const batch = 10;

/** How long a shutdown waits for a mail that is being sent. */
const patienceMs = 5_000;

/** Takes mails out of the outbox and gives them to the SMTP server, one at a time. Nothing else waits for that. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { store, post, clock, log, mayRun, open, context, onSent, onFailure } = deps;
  let running: Promise<void> | null = null;
  const isRunning = () => running !== null;
  const maySend = () => !isStopped && mayRun();
  let cancelTimer: (() => void) | null = null;
  let isStopped = true;
  let isWanted = false;
  /**
   * A mail that was taken, but that the store could not mark as sent: sent again until it can, it would arrive every ten
   * seconds.
   */
  let unnoted: WaitingMail | null = null;
  /** Failures since the last mail that was taken; only the first of them is logged. */
  let failures = 0;
  /** The latest stop. */
  let stopping: Promise<unknown> | null = null;

  function schedule(delayMs: number): void {
    cancelTimer?.();
    cancelTimer = isStopped ? null : clock.after(delayMs, run);
  }

  function run(): void {
    if (isStopped) return;
    if (isRunning()) {
      isWanted = true;
      return;
    }
    isWanted = false;
    running = work().finally(() => {
      running = null;
      if (isWanted) run();
    });
  }

  async function work(): Promise<void> {
    try {
      if (unnoted) await noteSent(unnoted);
      while (maySend()) {
        const { mails } = await store.dueMail(clock.now(), batch);
        if (mails.length === 0) break;
        for (const mail of mails) {
          if (!maySend()) break;
          await deliver(mail);
        }
      }
    } catch (error) {
      // The store reports its own failures; what is due is still there.
      if (!isStopped) log.write("warn", "mail.outbox_unread", { error: messageOf(error) });
    }
    schedule(pollMs);
  }

  async function deliver(mail: WaitingMail): Promise<void> {
    const { kind, recipient, state } = mail;
    const facts = await unlessDamaged(current(mail), null);
    // One whose account cannot be read is tried again, and keeps no other waiting.
    if (facts === null) return tryLater(mail);
    // Nobody knows what was left out, and it was for the same address: most likely it does not hold either.
    if (facts.length === 0) return store.mailDropped(mail, clock.now());
    try {
      await post.send(writeLetter(kind, { ...state, facts }, context()), recipient, idOf(mail));
    } catch (error) {
      onFailure();
      failures += 1;
      if (failures === 1) log.write("error", "mail.failed", { kind, error: messageOf(error) });
      return tryLater(mail);
    }
    onSent();
    if (failures > 0) log.write("info", "mail.recovered", { failures });
    failures = 0;
    await noteSent(mail);
  }

  async function tryLater(mail: WaitingMail): Promise<void> {
    if (!(await store.mailNotSent(mail, clock.now()))) log.write("error", "mail.given_up", { kind: mail.kind });
  }

  async function noteSent(mail: WaitingMail): Promise<void> {
    unnoted = mail;
    await store.mailSent(mail, clock.now());
    unnoted = null;
  }

  /** The facts that still hold: accounts may be gone, or have another address, and a disk may have room again. */
  async function current({ kind, recipient, state }: WaitingMail): Promise<MailFact[]> {
    const facts: MailFact[] = [];
    for (const fact of state.facts) {
      if (typeof fact.tenantId === "string") {
        const tenant = await store.findTenant(fact.tenantId);
        if (tenant?.email.toLowerCase() !== recipient || !canGetMail(recipient)) continue;
      }
      if (isStanding(kind) && (isOld(fact, state, clock.now()) || !(await deps.stands[kind]()))) continue;
      const opened = open(fact, clock.now());
      if (opened) facts.push(opened);
    }
    return facts;
  }

  /** The same on every try, so that a repeat of a mail taken just before a crash can be recognised. */
  function idOf({ kind, recipient, state }: WaitingMail): string {
    const digest = createHash("sha256")
      .update(JSON.stringify([kind, recipient, state.queuedAt]))
      .digest("hex");
    return `<${digest.slice(0, 32)}@${new URL(context().baseUrl).hostname}>`;
  }

  return {
    start() {
      isStopped = false;
      stopping = null;
      run();
    },
    wake: run,
    async stop() {
      isStopped = true;
      cancelTimer?.();
      // A mail that the SMTP server has taken but not confirmed in time is sent again at the next start.
      stopping ??= running && Promise.race([running, sleep(clock, patienceMs)]);
      await stopping;
    },
  };
}
