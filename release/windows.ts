import { version } from "../src/version.ts";
import { resedit } from "./resedit.ts";

const { Format, NtExecutable, NtExecutableResource, Resource } = resedit;

/** English (United States), and Unicode: under these the runtime has its own strings, which are replaced. */
const language = { lang: 1033, codepage: 1200 };

/** RT_ICON and RT_GROUP_ICON. */
const iconTypes: readonly (number | string)[] = [3, 14];

const strings = {
  ProductName: "Postrider",
  FileDescription: "Postrider webhook relay",
  CompanyName: "The Postrider authors",
  LegalCopyright: "MIT licence; postrider licenses prints those of what it contains",
  InternalName: "postrider",
  OriginalFilename: "postrider.exe",
  ProductVersion: version,
  FileVersion: version,
};

/** What Windows shows of the file: its name, version and authors in place of the runtime's, and no icon of another program. */
export function nameExecutable(runtime: Uint8Array): Uint8Array {
  // Its signature would not hold for what is made of it.
  const executable = NtExecutable.from(runtime, { ignoreCert: true });
  const resources = NtExecutableResource.from(executable);
  const info = Resource.VersionInfo.fromEntries(resources.entries)[0];
  if (!info) throw new Error("The runtime for Windows has no version resource");
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  info.setFileVersion(major, minor, patch, 0, language.lang);
  info.setProductVersion(major, minor, patch, 0, language.lang);
  info.setStringValues(language, strings);
  info.outputToResourceEntries(resources.entries);
  resources.entries = resources.entries.filter(({ type }) => !iconTypes.includes(type));
  resources.outputResource(executable, false, true);
  return new Uint8Array(executable.generate());
}

/** What the resources of a finished executable say, where the program behind them keeps resedit from taking them apart. */
export function namesOf(executable: Uint8Array): Record<string, string> {
  const section = NtExecutable.from(executable).getSectionByEntry(Format.ImageDirectoryEntry.Resource);
  if (!section?.data) throw new Error("The executable for Windows has no resources");
  const text = Buffer.from(section.data).toString("utf16le");
  return Object.fromEntries(
    Object.keys(strings).map((name) => [name, new RegExp(`${name}\0+([^\0]+)\0`).exec(text)?.[1] ?? ""]),
  );
}
