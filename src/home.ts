import type { Pausable } from "./domain/pauses.ts";
import type { Secrets } from "./secrets.ts";

/** Where the running server can be found, for commands on the same machine. */
export interface Whereabouts {
  readonly pid: number;
  readonly url: string;
  /** It is shutting down: the next server may wait for it. */
  readonly stopping?: boolean;
  /** Noted by the home: the network that `url` is an address in (`networkNamespace`). */
  readonly network?: string | null;
}

/** Where the master key is, and the one that will replace it. */
export interface MasterKeyFiles {
  /** Names, for people. */
  readonly current: string;
  readonly next: string;
  /** Null: it cannot be read. */
  readCurrent(): Uint8Array | null;
  /** Null: there is none. @throws StartupError when it is not a key */
  readNext(warn: (message: string) => void): Uint8Array | null;
  /** The existing one, or a new one that is on disk. @throws StartupError when it cannot be written */
  makeNext(warn: (message: string) => void): Uint8Array;
  /** Replaces the current one by the next. @throws the system's error when that fails */
  promote(): void;
}

/** What a server has on its machine while it runs, apart from its store and its secrets. A data directory is one. */
export interface Home {
  /** Tells others where this server listens. If that fails, only commands on this machine miss it. */
  announce(server: Whereabouts, warn: (message: string) => void): void;
  /**
   * Replaces the operator token where it is kept, and returns the new one.
   * @throws the system's error when it cannot be written; then the old one stays valid
   */
  rotateOperatorToken(): string;
  readonly masterKeyFiles: MasterKeyFiles;
  /**
   * Takes over the secrets that all servers of a database share: any made here from another master key give way.
   * @throws the system's error when they cannot be written
   */
  shareSecrets(secrets: Pick<Secrets, "sessionSecret" | "operatorToken">): void;
  /** Where the data was moved that was stored here; null: nowhere. */
  movedTo(): string | null;
  /** What the last server here was known as among those that share its database; null if there was none, or it is not known. */
  lastNode(): string | null;
  /** Notes what this one is known as. If that fails, the next one waits until a lease has run out. */
  noteNode(mark: string): void;
  /**
   * Resumes what a restore has asked to hold back, for the next start too.
   * @throws the system's error when that cannot be noted
   */
  resumed(what: Pausable): void;
  /** Whether a restore has asked that what is pending in the database here fails before anything goes out. */
  failsPending(): boolean;
  /** What was pending has failed: from now on everything goes out. @throws the system's error when that cannot be noted */
  pendingFailed(): void;
  /** What was noted about backups; null when nothing was. */
  readBackupNotes(): string | null;
  /** @throws the system's error when it cannot be written */
  noteBackups(text: string): void;
  /** Lets the next server in. */
  release(): void;
}

/** A home that is left only once, by the first caller; anything noted after that would belong to the next server there. */
export function leftOnce(home: Home): Home {
  let hasLeft = false;
  return {
    ...home,
    noteNode: (mark) => void (hasLeft || home.noteNode(mark)),
    release() {
      if (hasLeft) return;
      hasLeft = true;
      home.release();
    },
  };
}
