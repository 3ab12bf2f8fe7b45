/** Where backups are kept. */
export interface Place {
  /** For people. */
  readonly name: string;
  /** The folder that it is in this machine's file system; null when it is elsewhere. */
  readonly folder: string | null;
  /**
   * Stores a backup. It gets its name only once it is whole and durable, and replaces one of the same name, but nothing else.
   * @param signal breaks off what comes after the source has ended
   * @returns its size
   * @throws the signal's reason
   */
  put(name: string, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>;
  /** The backups named by `backupName`, in the order of `newestFirst`. */
  list(now: number): Promise<StoredBackup[]>;
  read(name: string): AsyncIterable<Uint8Array>;
  remove(name: string): Promise<void>;
}

export interface StoredBackup {
  readonly name: string;
  readonly bytes: number;
  readonly createdAt: number;
}

/** A place, and the backup meant there; null: none in particular. */
export interface Location {
  readonly place: Place;
  readonly name: string | null;
}

/** What POSTRIDER_BACKUP_URL names is a folder or a prefix, whatever it is called and whether or not it is there yet. */
export const asFolder = (url: string): string => (url.endsWith("/") ? url : `${url}/`);

/** `postrider-20261123T163008.123Z.tar.zst`, plus `.age` when it is encrypted. The names sort by time. */
export const backupName = (now: number, isEncrypted: boolean): string =>
  `postrider-${new Date(now).toISOString().replaceAll(/[-:]/g, "")}.tar.zst${isEncrypted ? ".age" : ""}`;

/** By its name alone: nobody but its owner can open it. */
export const isEncryptedName = (name: string): boolean => name.endsWith(".age");

const named = /^postrider-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z\.tar\.zst(?:\.age)?$/;

/** When the backup with that name was made; null when the name is not one of ours. */
export function timeInName(name: string): number | null {
  const [, year, month, day, hour, minute, second] = named.exec(name) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? null : at;
}

/** How far a clock is set back without anybody noticing. */
const aheadMs = 60 * 60_000;

/** Whether the clock was ahead when the backup was made: it is older than its name says. */
export const isAhead = (createdAt: number, now: number): boolean => createdAt > now + aheadMs;

/** Those that are ahead come last: any of the others may be newer. */
export const newestFirst = (backups: readonly StoredBackup[], now: number): StoredBackup[] => {
  const rank = ({ createdAt }: StoredBackup) => Number(isAhead(createdAt, now));
  return [...backups].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? 1 : -1));
};
