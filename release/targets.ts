/** What is released: an executable for each of these, and what is made of it. */
export interface Target {
  /** `linux-x64`: the end of every file's name. */
  readonly name: string;
  /** `--target` of `bun build`. */
  readonly bun: string;
  readonly system: "linux" | "darwin" | "windows";
  /** What the machine has to be, and to have; it stands in each archive. */
  readonly needs: string;
  /** Shared libraries that the executable asks for; another one is found when it is built. */
  readonly libraries: readonly string[];
  /** Debian's name of the architecture, where there is a package. */
  readonly debian?: "amd64" | "arm64";
}

const glibc = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

export const targets: readonly Target[] = [
  {
    name: "linux-x64",
    bun: "bun-linux-x64",
    system: "linux",
    needs: "Linux on x64 with SSE4.2 (Intel since 2009, AMD since 2011), glibc 2.17 or later, and nothing else.",
    libraries: [...glibc, "ld-linux-x86-64.so.2"],
    debian: "amd64",
  },
  {
    name: "linux-arm64",
    bun: "bun-linux-arm64",
    system: "linux",
    needs: "Linux on arm64, glibc 2.17 or later, and nothing else.",
    libraries: [...glibc, "ld-linux-aarch64.so.1"],
    debian: "arm64",
  },
  {
    name: "linux-x64-musl",
    bun: "bun-linux-x64-musl",
    system: "linux",
    needs:
      "Linux on x64 with SSE4.2 and musl (tried with 1.2.5), and the C++ library: apk add libstdc++ (it brings libgcc).",
    libraries: ["libc.musl-x86_64.so.1", "libstdc++.so.6"],
  },
  {
    name: "darwin-arm64",
    bun: "bun-darwin-arm64",
    system: "darwin",
    needs: "macOS 13 or later on Apple silicon.",
    libraries: [
      "/usr/lib/libSystem.B.dylib",
      "/usr/lib/libc++.1.dylib",
      "/usr/lib/libicucore.A.dylib",
      "/usr/lib/libresolv.9.dylib",
    ],
  },
  {
    name: "windows-x64",
    bun: "bun-windows-x64",
    system: "windows",
    needs: "Windows 10 (1809) or later, or Windows Server 2019 or later, on x64 with SSE4.2.",
    libraries: [],
  },
];

/** The name of the executable within `dist`. */
export const executableName = ({ name, system }: Target) => `postrider-${name}${system === "windows" ? ".exe" : ""}`;
