import { readlinkSync } from "node:fs";

/** Names the network of this process: in another one, loopback is another machine. Null where the system has no such names. */
export function networkNamespace(): string | null {
  try {
    return readlinkSync("/proc/self/ns/net");
  } catch {
    return null;
  }
}
