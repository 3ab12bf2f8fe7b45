import type { Pausable } from "./domain/pauses.ts";
import type { Secrets } from "./secrets.ts";

/** Where the running server can be found, for commands on the same machine. */
export interface Whereabouts {
  readonly pid: number;
  readonly url: string;
  /** It is shutting down: the next one may wait for it. */
  readonly stopping?: boolean;
}

/** Where the master key is, and the one that is to take its place. */
export interface MasterKeyFiles {
  /** Names, for people. */
  readonly current: string;
  readonly next: string;
  /** Null: it cannot be read. */
  readCurrent(): Uint8Array | null;
  /** Null: there is none. @throws StartupError when it is no key */
  readNext(warn: (message: string) => void): Uint8Array | null;
  /** The one that there is, or one that is made and on disk. @throws StartupError when it cannot be written */
  makeNext(warn: (message: string) => void): Uint8Array;
  /** The next one takes the place of the current one. @throws the system's error when it cannot */
  promote(): void;
}

/** What a server has on its machine for as long as it runs, beside its store and its secrets. A data directory is one. */
export interface Home {
  /** Tells others where this server listens. Only commands on this machine miss it when it cannot be told. */
  announce(server: Whereabouts, warn: (message: string) => void): void;
  /**
   * Replaces the operator token where it is kept, and returns the new one.
   * @throws the system's error when it cannot be written; then the old one stays valid
   */
  rotateOperatorToken(): string;
  readonly masterKeyFiles: MasterKeyFiles;
  /**
   * These are the secrets that all servers of a database share: what was made here from another master key gives way.
   * @throws the system's error when they cannot be written
   */
  shareSecrets(secrets: Pick<Secrets, "sessionSecret" | "operatorToken">): void;
  /** What the last server here was known as among those that share its database; null when there was none, or it is not known. */
  lastNode(): string | null;
  /** Notes what this one is known as. When it cannot, the next one waits until a lease has run out. */
  noteNode(mark: string): void;
  /**
   * What a restore has asked to hold back goes on, at the next start too.
   * @throws the system's error when that cannot be noted
   */
  resumed(what: Pausable): void;
  /** A restore has asked that what is pending in the database here fails before anything goes out. */
  failsPending(): boolean;
  /** It has failed: from now on all goes out. @throws the system's error when that cannot be noted */
  pendingFailed(): void;
  /** What was noted of backups; null when nothing was. */
  readBackupNotes(): string | null;
  /** @throws the system's error when it cannot be written */
  noteBackups(text: string): void;
  /** Lets the next server in. */
  release(): void;
}

/** A home that is left once, by whoever comes first; what is noted after that would be of the next server there. */
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
