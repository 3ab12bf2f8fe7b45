/** What is used of resedit, by a name that the compiler does not follow: its own types bring those of the browser along. */
interface Resedit {
  NtExecutable: { from(bytes: Uint8Array, options?: { ignoreCert?: boolean }): Executable };
  NtExecutableResource: { from(executable: Executable): Resources };
  Resource: { VersionInfo: { fromEntries(entries: readonly ResourceEntry[]): VersionInfo[] } };
  Format: { ImageDirectoryEntry: { Resource: number } };
}

interface Executable {
  getSectionByEntry(entry: number): { data: ArrayBuffer | null } | null;
  generate(): ArrayBuffer;
}

interface Resources {
  entries: ResourceEntry[];
  outputResource(executable: Executable, noGrow: boolean, allowShrink: boolean): void;
}

interface ResourceEntry {
  type: string | number;
}

interface VersionInfo {
  setFileVersion(major: number, minor: number, patch: number, build: number, lang: number): void;
  setProductVersion(major: number, minor: number, patch: number, build: number, lang: number): void;
  setStringValues(language: { lang: number; codepage: number }, values: Readonly<Record<string, string>>): void;
  outputToResourceEntries(entries: ResourceEntry[]): void;
}

const name: string = "resedit";

export const resedit: Resedit = await import(name);
