import type { KeyUse } from "./accounts/api-keys.ts";
import type { PasswordResets } from "./accounts/password-reset.ts";
import type { Strangers } from "./audit/strangers.ts";
import type { Backups } from "./backup/backups.ts";
import { failPending } from "./backup/fail-pending.ts";
import type { Billing } from "./billing/billing.ts";
import type { Config } from "./config.ts";
import { listenersText } from "./delivery/network/own-listeners.ts";
import type { Sender } from "./delivery/sender.ts";
import type { Pauses } from "./domain/pauses.ts";
import type { Engine } from "./engine.ts";
import { warnOfForeignVariables } from "./foreign-variables.ts";
import type { Successor } from "./handover.ts";
import type { Home } from "./home.ts";
import type { Answers } from "./http/answers.ts";
import type { HealthBeacon } from "./http/health-beacon.ts";
import { type Clock, sleep } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import type { Threads } from "./lib/threads.ts";
import type { Mail } from "./mail/mail.ts";
import type { DescriptorWatch } from "./maintenance/descriptor-watch.ts";
import type { DiskWatch } from "./maintenance/disk-watch.ts";
import type { KeyRotation } from "./operator/key-rotation.ts";
import type { Server } from "./server.ts";
import type { ServerAddress } from "./server-address.ts";
import type { NodeLease } from "./store/node-lease.ts";
import type { Store } from "./store/store.ts";
import type { Hub } from "./stream/hub.ts";

/** How the program starts, and the ways in which it ends. */
export interface Lifecycle {
  /**
   * Does what a restore has asked to be done before anything is answered or delivered, which may take long. `start` does
   * it if it is not done by then.
   * @returns false when the signal came first; the next start goes on
   * @throws StartupError with what to do
   */
  endRestore(signal: AbortSignal): Promise<boolean>;
  /** Listens, and starts delivering what is pending. @throws StartupError when it cannot listen */
  start(): Promise<{ url: string; port: number }>;
  /**
   * Starts nothing new; lets attempts in flight end, and a balancer notice, while requests are still served; then turns
   * requests away, and closes streams and database.
   * @returns false when attempts were broken off; they are made again at the next start
   */
  stop(): Promise<boolean>;
  /** Like `stop`, for a server that is succeeded: nothing is turned away. @returns false when no successor is alive */
  handOver(successor: Successor): Promise<boolean>;
}

/** The parts that are started and stopped. */
export interface LifecycleDeps {
  config: Pick<Config, "databaseUrl" | "localMode" | "host" | "foreignVariables">;
  clock: Clock;
  log: Log;
  home: Pick<Home, "announce" | "failsPending" | "pendingFailed" | "release">;
  store: Store;
  lease: Pick<NodeLease, "announce" | "living">;
  nodeName: string;
  /** Its predecessor has the same name, and lives on for a while. */
  isSuccessor: boolean;
  server: Pick<Server, "listen" | "alsoGuard" | "turnAway" | "sendElsewhere" | "underWay" | "stop">;
  address: ServerAddress;
  beacon: HealthBeacon | null;
  engine: Engine;
  sender: Pick<Sender, "close">;
  billing: Pick<Billing, "work" | "close">;
  backups: Pick<Backups, "start" | "stop">;
  keyRotation: Pick<KeyRotation, "start" | "stop">;
  mail: Pick<Mail, "start" | "stop"> | null;
  pauses: Pick<Pauses, "paused" | "isPaused">;
  descriptors: Pick<DescriptorWatch, "start" | "stop">;
  threads: Pick<Threads, "release">;
  disk: Pick<DiskWatch, "look">;
  hub: Pick<Hub, "closeAll">;
  answers: Pick<Answers, "closeAll" | "underWay">;
  /** What these still hold in memory is written at the end. */
  unwritten: readonly (KeyUse | Strangers | PasswordResets | Engine)[];
  /** Keeps deliveries away from where servers of this database listen. */
  avoidNodes(): void;
  warn(message: string): void;
  /** Called once: nothing new is started, and requests are served until what is in flight has ended. */
  onStopping(): void;
  /** Tests have no balancer that would have to notice. @default defaultNoticeMs */
  noticeMs?: number | undefined;
}

/** How long attempts in flight may take to end when the program is stopped (an attempt takes 10 s at most). */
const drainMs = 8000;

/**
 * How long one of several servers goes on answering, while `/readyz` says 503, so that a balancer that asks every 2 s
 * sends it nothing more: anything sent to a closed port, or on a connection that is just ending, would be a 502.
 */
const defaultNoticeMs = 5000;

/** How long a connection that came just before the port changed hands has to send its request, and a request to be answered. */
const stragglerMs = 60;

/**
 * A stop waits for this long for requests under way. By then nothing else is left to wait for, and the next server cannot start
 * before this one has ended.
 */
const lastAnswersMs = 1000;

export function createLifecycle(deps: LifecycleDeps): Lifecycle {
  const { config, clock, log, home, store, lease, server, address, beacon, engine, sender, billing } = deps;
  const { nodeName, isSuccessor, backups, keyRotation, mail, pauses } = deps;
  const { descriptors, threads, disk, hub, answers, avoidNodes, warn } = deps;
  const { noticeMs = defaultNoticeMs } = deps;

  async function endRestore(signal: AbortSignal): Promise<boolean> {
    // This concerns only the database in the data directory.
    if (config.databaseUrl !== null || !home.failsPending()) return true;
    if (!(await failPending({ store, clock, log, signal }))) return false;
    home.pendingFailed();
    return true;
  }

  async function listen(): Promise<number> {
    const port = await server.listen();
    address.listensOn(port);
    avoidNodes();
    if (beacon) {
      const probes = await beacon.start();
      server.alsoGuard(probes);
      address.answersProbesOn(probes);
      log.write("info", "server.probes", { host: config.host, port: probes });
    }
    await lease.announce(listenersText(address.ownListeners));
    avoidNodes();
    warnOfNamesake();
    home.announce({ pid: process.pid, url: address.localUrl() }, warn);
    return port;
  }

  /** Commands and messages tell servers apart by their names. One that was killed keeps its name until its lease has run out. */
  function warnOfNamesake(): void {
    const namesakes = lease.living().filter(({ name }) => name === nodeName);
    if (isSuccessor || namesakes.length < 2) return;
    log.write("warn", "node.name_taken", {
      node: nodeName,
      message: "Another server on this database has the same name. Try: give each its own POSTRIDER_NODE_NAME.",
    });
  }

  async function startWork(): Promise<void> {
    for (const what of pauses.paused()) {
      log.write("warn", "server.paused", { what, resume: `postrider resume ${what}` });
    }
    if (pauses.isPaused("deliveries")) engine.dispatcher.hold(true);
    await engine.start();
    if (!pauses.isPaused("charges")) billing.work.start();
    backups.start();
    mail?.start();
    descriptors.start();
    disk.look();
  }

  /** @returns the number of attempts that were broken off */
  async function stopWork(): Promise<number> {
    const [left] = await Promise.all([engine.stop(drainMs, billing.work.stop()), backups.stop(), keyRotation.stop()]);
    return left;
  }

  async function handOverAlone(successor: Successor): Promise<boolean> {
    const left = await stopWork();
    // A conversation with a mail server may take seconds, and nobody should wait for it at the successor.
    await mail?.stop();
    await successor.takePort();
    await leavePort();
    await close(left);
    return successor.enter();
  }

  /** Where several servers may run, the successor runs alongside this one: nothing waits for attempts in flight here. */
  async function handOverShared(successor: Successor): Promise<boolean> {
    leaveHome();
    const isSucceeded = await successor.enterBeside();
    // Leave the port first, so that no more events come: what is given back is found by others only within a second.
    await leavePort();
    await close(await stopWork());
    return isSucceeded;
  }

  function announceEnd(): void {
    const url = address.localUrl();
    if (url !== "") home.announce({ pid: process.pid, url, stopping: true }, warn);
  }

  /** Answers what has come; what waits at the successor in the meantime does not wait for a client that takes its time. */
  async function leavePort(): Promise<void> {
    hub.closeAll();
    await sleep(clock, stragglerMs);
    for (let waitedMs = 0; isAnswering() && waitedMs < stragglerMs; waitedMs += 5) await sleep(clock, 5);
    answers.closeAll();
    server.turnAway();
    await stopServer(stragglerMs);
  }

  const isAnswering = () => server.underWay() > 0 || answers.underWay > 0;

  /** Waits for the answers to requests under way, but no longer than that: a client may take any time to send its request. */
  const stopServer = (withinMs: number) => Promise.race([server.stop(), sleep(clock, withinMs)]);

  /**
   * @param left the number of attempts that were broken off
   * @param lastAnswers waits for the answers to requests under way
   */
  async function close(left: number, lastAnswers = async () => {}): Promise<boolean> {
    await billing.close();
    sender.close();
    hub.closeAll();
    await Promise.allSettled(deps.unwritten.map((part) => part.flush()));
    await mail?.stop();
    await lastAnswers();
    answers.closeAll();
    descriptors.stop();
    await store.close();
    threads.release();
    leaveHome();
    log.write("info", "server.stopped", { brokenOff: left });
    return left === 0;
  }

  /** Lets another process on this machine take the place of this one. */
  function leaveHome(): void {
    beacon?.stop();
    home.release();
  }

  return {
    endRestore,

    async start() {
      await endRestore(new AbortController().signal);
      await keyRotation.start();
      const port = await listen();
      await startWork();
      warnOfForeignVariables(config.foreignVariables, log);
      const url = address.publicUrl();
      log.write("info", "server.started", { url, mode: config.localMode ? "local" : "public" });
      return { url, port };
    },

    async stop() {
      deps.onStopping();
      beacon?.drain();
      announceEnd();
      const hasBalancer = !config.localMode && lease.living().length > 1;
      const noticed = hasBalancer ? sleep(clock, noticeMs) : null;
      const left = await stopWork();
      await noticed;
      server.turnAway();
      return close(left, () => stopServer(lastAnswersMs));
    },

    async handOver(successor) {
      server.sendElsewhere();
      announceEnd();
      return config.databaseUrl === null ? handOverAlone(successor) : handOverShared(successor);
    },
  };
}
