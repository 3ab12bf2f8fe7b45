import type { Log } from "./lib/log.ts";

/**
 * Kubernetes describes every service of a namespace to every container in it, and Docker every linked container: for one
 * called "postrider" (or "postrider-web", then with `WEB_` in the names), under our own prefix. A variable is theirs
 * only if both its name and its value have that form, so that a typo in a setting still stops the start.
 *
 * Sources: Kubernetes, "Discovering services", environment variables; Docker, "Legacy container links".
 */
const forms: readonly { name: RegExp; value: RegExp }[] = [
  { name: /^POSTRIDER_(?:\w+_)?SERVICE_HOST$/, value: /^[\da-fA-F:.]+$/ },
  { name: /^POSTRIDER_(?:\w+_)?SERVICE_PORT(?:_\w+)?$/, value: /^\d+$/ },
  { name: /^POSTRIDER_(?:\w+_)?PORT(?:_\d+_(?:TCP|UDP|SCTP))?$/, value: /^(?:tcp|udp|sctp):\/\// },
  { name: /^POSTRIDER_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)_PROTO$/, value: /^(?:tcp|udp|sctp)$/ },
  { name: /^POSTRIDER_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)_PORT$/, value: /^\d+$/ },
  { name: /^POSTRIDER_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)_ADDR$/, value: /^[\da-fA-F:.]+$/ },
  // Docker only: the link's own name, and the other container's environment.
  { name: /^POSTRIDER_(?:\w+_)?NAME$/, value: /^\/[\w.-]+\/[\w.-]+$/ },
  { name: /^POSTRIDER_(?:\w+_)?ENV_\w+$/, value: /^/ },
];

/** Whether a container platform has set this variable. */
export const isForeignVariable = (name: string, value: string): boolean =>
  name.startsWith("POSTRIDER_") && forms.some((form) => form.name.test(name) && form.value.test(value));

/** @param names of ignored variables */
export function warnOfForeignVariables(names: readonly string[], log: Log): void {
  if (names.length === 0) return;
  log.write("warn", "config.foreign_variables", {
    names: names.join(", "),
    message:
      "They look like settings, but a container platform has set them for a service of this name, so they " +
      "are ignored. Try: enableServiceLinks: false, or another name for the service.",
  });
}
